/*
 * twice.c - two double frees by one wrapper, as many programs have it; linked as nvcc links by
 * default.
 */
#include <cuda_runtime_api.h>

static void release(void *p) {
    cudaFree(p);
}

static void camera(void *p) {
    release(p);
    release(p); /* a bug of the camera's */
}

static void viewer(void *p) {
    release(p);
    release(p); /* and one of the viewer's */
}

int main(void) {
    void *p, *q;
    if (cudaMalloc(&p, 4096) != cudaSuccess || cudaMalloc(&q, 4096) != cudaSuccess)
        return 1;
    camera(p);
    viewer(q);
    return 0;
}
