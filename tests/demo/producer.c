/* An ordinary CUDA program: fills a buffer, waits, looks at it again, frees it. Enter takes it on.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE ((size_t)64 << 20)

static void check(cudaError_t error, const char *call) {
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "producer: %s: %s\n", call, cudaGetErrorString(error));
    exit(1);
}

static void wait_for_enter(void) {
    fflush(stdout);
    while (getchar() != '\n')
        if (feof(stdin))
            exit(1);
}

int main(void) {
    static const char frame[] = "frame 1, drawn by the producer";
    char seen[64];
    void *buffer;
    check(cudaMalloc(&buffer, SIZE), "cudaMalloc");
    check(cudaMemcpy(buffer, frame, sizeof(frame), cudaMemcpyHostToDevice), "cudaMemcpy");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    printf("cudaMalloc gave %p; wrote \"%s\"\n", buffer, frame);
    wait_for_enter();
    check(cudaMemcpy(seen, buffer, sizeof(seen), cudaMemcpyDeviceToHost), "cudaMemcpy");
    printf("reads its buffer again: \"%s\"\n", seen);
    wait_for_enter();
    printf("cudaFree answered: %s\n", cudaGetErrorName(cudaFree(buffer)));
    wait_for_enter();
    return 0;
}
