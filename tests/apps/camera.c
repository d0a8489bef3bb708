/* camera.c - draws a frame into GPU memory, keeps it for as many seconds as it is told, and frees
 * it. */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <unistd.h>

enum { FRAME = 64 << 20 };

int main(int argc, char **argv) {
    void *frame;
    if (cudaMalloc(&frame, FRAME) || cudaMemset(frame, 42, FRAME) || cudaDeviceSynchronize())
        return 1;
    sleep(argc > 1 ? (unsigned)atoi(argv[1]) : 10);
    return cudaFree(frame) ? 1 : 0;
}
