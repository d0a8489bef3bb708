/* viewer.c - allocates GPU memory and says what is in it; and again after as many seconds as it is
 * told. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FRAME = 64 << 20 };

static int look(const void *frame) {
    unsigned char seen;
    if (cudaMemcpy(&seen, frame, 1, cudaMemcpyDeviceToHost))
        return 1;
    printf("viewer: sees %d\n", seen);
    return fflush(stdout);
}

int main(int argc, char **argv) {
    void *frame;
    if (cudaMalloc(&frame, FRAME) || look(frame))
        return 1;
    sleep(argc > 1 ? (unsigned)atoi(argv[1]) : 0);
    return look(frame) || cudaFree(frame) ? 1 : 0;
}
