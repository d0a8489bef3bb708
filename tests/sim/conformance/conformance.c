/*
 * Runs the rows of driver-truth.md against whatever libcuda.so.1 is found, step by step with real
 * processes, and prints `row | what | expected | got | ok`. Exits 1 if anything differs: on a card
 * then the recorded truth is wrong, on the simulator the simulator is.
 *
 * Not run: 30 (needs CUDA_VISIBLE_DEVICES and two cards), 31 and 32 (namespaces: the scenario tests
 * have them). 33 is scaled down to 200 allocations.
 */
#include "check.h"

#include <stdio.h>

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("row  | %-58s | expected |      got | ok\n", "what");
    memory_rows();
    life_rows();
    event_rows();
    return check_differences() ? 1 : 0;
}
