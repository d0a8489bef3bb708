/*
 * camerad.c - a daemon in C that draws frames into one buffer on the GPU. Nothing in it knows of
 * other programs: daemon.conf gives its buffer to frontend.py.
 *
 *     nvcc -x c camerad.c -o camerad
 *
 * Draws a frame for each line of its standard input, and ends with it.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE ((size_t)64 << 20)

static void check(cudaError_t error, const char *call) {
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "camerad: %s: %s\n", call, cudaGetErrorString(error));
    exit(1);
}

int main(void) {
    void *frame;
    char text[64] = "";
    check(cudaMalloc(&frame, SIZE), "cudaMalloc");
    for (int number = 1;; number++) {
        snprintf(text, sizeof(text), "frame %d, drawn by camerad", number);
        check(cudaMemcpy(frame, text, sizeof(text), cudaMemcpyHostToDevice), "cudaMemcpy");
        check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        printf("%s\n", text);
        fflush(stdout);
        for (int c; (c = getchar()) != '\n';)
            if (c == EOF)
                return cudaFree(frame) != cudaSuccess;
    }
}
