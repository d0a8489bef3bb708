/*
 * deepbind.c - a library that is linked with the driver. A program loads it with RTLD_DEEPBIND, and
 * it is bound lazily.
 */
#include <cuda.h>

int fill(CUdeviceptr at);
int properties(CUdeviceptr handle);

int fill(CUdeviceptr at) {
    return (int)cuMemsetD8(at, 0x55, 64);
}

int properties(CUdeviceptr handle) {
    CUmemAllocationProp what;
    return (int)cuMemGetAllocationPropertiesFromHandle(&what, handle);
}
