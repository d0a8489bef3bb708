/*
 * Allocations from many call paths: two functions that call each other by the bits of a number make
 * 65,536 stacks of 16 frames, all different.
 */
#include "measure.h"

enum { DEPTH = 16 };

static void *pointer;

static void right(unsigned path, int depth);

/* Never a tail call, never inlined: each level must stand on the stack. */
#define STEP(path, depth)                                                                          \
    do {                                                                                           \
        if ((depth) == 0)                                                                          \
            check(cudaMalloc(&pointer, size), "cudaMalloc");                                       \
        else if ((path)&1)                                                                         \
            right((path) >> 1, (depth)-1);                                                         \
        else                                                                                       \
            left((path) >> 1, (depth)-1);                                                          \
        __asm__ volatile("");                                                                      \
    } while (0)

__attribute__((noinline)) static void left(unsigned path, int depth) {
    STEP(path, depth);
}

__attribute__((noinline)) static void right(unsigned path, int depth) {
    STEP(path, depth);
}

void paths_new(void) {
    static unsigned next;
    left(next++, DEPTH);
    check(cudaFree(pointer), "cudaFree");
}

void paths_known(void) {
    left(0x5555, DEPTH);
    check(cudaFree(pointer), "cudaFree");
}
