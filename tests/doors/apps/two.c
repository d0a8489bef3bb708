/* two.c - a library with a runtime of its own, whose error state tells whether its call came there.
 */
#include <cuda_runtime_api.h>

int two_fail(int which);
int two_last(void);

/* Two call sites, and no tail call. */
int two_fail(int which) {
    cudaError_t error;
    if (which)
        error = cudaFree((void *)0x1234);
    else
        error = cudaIpcCloseMemHandle((void *)0x1234);
    return error != cudaSuccess;
}

int two_last(void) {
    return (int)cudaGetLastError();
}
