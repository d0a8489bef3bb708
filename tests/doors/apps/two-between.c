/* two-between.c - a library that calls the runtime of the library it is linked with, without naming
 * any runtime itself. */
#include <cuda_runtime_api.h>

int two_fail(int which);

int two_fail(int which) {
    cudaError_t error;
    if (which)
        error = cudaFree((void *)0x4321);
    else
        error = cudaIpcCloseMemHandle((void *)0x4321);
    return error != cudaSuccess;
}
