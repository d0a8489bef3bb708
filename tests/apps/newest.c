/*
 * newest.c - calls a function that is newer than any driver, as a runtime finds it, and one that is
 * not. Ends with 0 if its arguments arrived.
 */
#include <cuda.h>
#include <stdint.h>
#include <string.h>

typedef double newest(long a, long b, long c, long d, long e, long f, long g, double x, double y);

static void *find(const char *name, int version) {
    void *found = NULL;
    CUdriverProcAddressQueryResult status;
    return cuGetProcAddress(name, &found, version, 0, &status) ? NULL : found;
}

int main(void) {
    CUdevice device;
    CUcontext context;
    CUdeviceptr pointer;
    if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
        cuCtxSetCurrent(context) || cuMemAlloc(&pointer, 4096))
        return 2;
    newest *const call = (newest *)(uintptr_t)find("cuSimNewest", 99000);
    newest *const again = (newest *)(uintptr_t)find("cuSimNewest", 99000);
    if (!call || call != again || !find("cuMemAlloc", 99000))
        return 3;
    const double sum = call(1, 2, 3, 4, 5, 6, 7, 9.5, 0.5) + again(7, 6, 5, 4, 3, 2, 1, 0.5, 0.5);
    return cuMemFree(pointer) || sum != 91234567.0 + 7654321.0;
}
