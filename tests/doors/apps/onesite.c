/* onesite.c - one call site for all functions, as a foreign function interface has. */
#include <cuda_runtime_api.h>
#include <stdio.h>

typedef cudaError_t function(void *pointer);

__attribute__((noinline)) static int call(function *volatile which, void *pointer) {
    const cudaError_t error = which(pointer);
    return error != cudaSuccess;
}

int main(void) {
    for (int round = 0; round < 3; round++) {
        void *pointer = NULL;
        const int code = cudaMalloc(&pointer, 4096);
        const int closed = call(cudaIpcCloseMemHandle, pointer);
        const int freed = call(cudaFree, pointer);
        printf("%d: %d %d\n", code, closed, freed);
    }
    return 0;
}
