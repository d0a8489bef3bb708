/*
 * Runs the rows of driver-truth.md against whatever libcuda.so.1 is found, step by step with real
 * processes, and prints `row | what | expected | got | ok`. Exits 1 if anything differs: on a card
 * then the recorded truth is wrong, on the simulator the simulator is.
 *
 * Not run: 31 and 32 (namespaces: the scenario tests have them). 33 has 10,000 allocations where
 * the card has 24 GiB free, else 200. Rows from 40 on are beyond that record: what the library
 * leans on, all the same. tests/gpu/compare.py compares two of these tables, a simulator's and a
 * card's.
 */
#include "check.h"

int main(void) {
    check_open();
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("row  | %-58s | expected |      got | ok\n", "what");
    memory_rows();
    life_rows();
    event_rows();
    load_rows();
    device_rows();
    vmm_rows();
    block_rows();
    hazard_rows();
    capture_rows();
    held_rows();
    owned_rows();
    checkpoint_rows();
    external_rows();
    return check_differences() ? 1 : 0;
}
