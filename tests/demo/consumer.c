/* An ordinary CUDA program: allocates a buffer, reads it, writes to it, frees it. Enter takes it
 * on. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#define SIZE ((size_t)64 << 20)

static void check(cudaError_t error, const char *call) {
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "consumer: %s: %s\n", call, cudaGetErrorString(error));
    exit(1);
}

static void wait_for_enter(void) {
    fflush(stdout);
    while (getchar() != '\n')
        if (feof(stdin))
            exit(1);
}

int main(void) {
    static const char answer[] = "frame 1, seen by the consumer ";
    char seen[64];
    void *buffer;
    check(cudaMalloc(&buffer, SIZE), "cudaMalloc");
    check(cudaMemcpy(seen, buffer, sizeof(seen), cudaMemcpyDeviceToHost), "cudaMemcpy");
    printf("cudaMalloc gave %p; reads \"%s\"\n", buffer, seen);
    check(cudaMemcpy(buffer, answer, sizeof(answer), cudaMemcpyHostToDevice), "cudaMemcpy");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    printf("wrote \"%s\"\n", answer);
    wait_for_enter();
    check(cudaMemcpy(seen, buffer, sizeof(seen), cudaMemcpyDeviceToHost), "cudaMemcpy");
    printf("still reads \"%s\"\n", seen);
    wait_for_enter();
    printf("cudaFree answered: %s\n", cudaGetErrorName(cudaFree(buffer)));
    return 0;
}
