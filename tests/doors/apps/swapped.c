/*
 * swapped.c - half of a pair of libraries with the same layout: at one place of the code each calls
 * another function of the runtime (CALLED). A right call succeeds in neither of the two's tests for
 * the other's function.
 */
#include <cuda_runtime_api.h>

int two_fail(int which);
int two_last(void);

/* 0: the function called is the one meant, for it bears what the other does not. */
int two_fail(int which) {
    void *pointer = (void *)0;
    cudaError_t error = cudaMalloc(&pointer, 4096);
    if (error == cudaSuccess)
        error = CALLED(pointer);
    return error != cudaSuccess || which;
}

int two_last(void) {
    return (int)cudaGetLastError();
}
