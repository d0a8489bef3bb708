/*
 * deep.c - a library with a hundred call sites, whose runtime is at the bottom of many layers of
 * libraries that need each other; see doors.mk.
 */
#include <cuda_runtime_api.h>

#define ONE wrong += cudaFree((void *)0x1234) == cudaSuccess;
#define TEN ONE ONE ONE ONE ONE ONE ONE ONE ONE ONE

int two_fail(int which);
int two_last(void);

/* Every call must fail. */
int two_fail(int which) {
    int wrong = 0;
    TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN return wrong + which;
}

int two_last(void) {
    return (int)cudaGetLastError();
}
