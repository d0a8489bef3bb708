/*
 * rules.c - a producer and a consumer that know nothing of each other: `write` fills a buffer, says
 * so, and frees it when its input ends; `read` allocates a buffer and looks what is in it. `free`
 * fills, frees and ends at once.
 */
#include "../../common/system_headers.h"
#include <cuda_runtime_api.h>

enum { SIZE = 1 << 20 };

static unsigned char bytes[SIZE];

static unsigned char pattern(int i) {
    return (unsigned char)(i * 7 + (i >> 9));
}

static int fill(void *buffer) {
    for (int i = 0; i < SIZE; i++)
        bytes[i] = pattern(i);
    return cudaMemcpy(buffer, bytes, SIZE, cudaMemcpyHostToDevice) || cudaDeviceSynchronize();
}

static int equal(const void *buffer) {
    if (cudaMemcpy(bytes, buffer, SIZE, cudaMemcpyDeviceToHost))
        return 0;
    for (int i = 0; i < SIZE; i++)
        if (bytes[i] != pattern(i))
            return 0;
    return 1;
}

int main(int argc, char **argv) {
    void *buffer = NULL;
    char unused;
    const char *what = argc > 1 ? argv[1] : "";
    if (cudaMalloc(&buffer, SIZE))
        return 2;
    if (strcmp(what, "read") == 0) {
        puts(equal(buffer) ? "equal" : "different");
    } else {
        if (fill(buffer))
            return 3;
        puts("filled");
        fflush(stdout);
        while (strcmp(what, "write") == 0 && read(0, &unused, 1) > 0)
            ;
    }
    return cudaFree(buffer) ? 4 : 0;
}
