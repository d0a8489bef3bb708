/* cuda_lookup.c - the driver's own resolver: asked first, then substituted by address (driver.h).
 */
#include "hooks.h"

static CUresult substituted(CUresult result, void **pfn) {
    if (result == CUDA_SUCCESS && pfn && *pfn)
        *pfn = gps_driver_substitute(*pfn);
    return result;
}

CUresult gps_on_cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags) {
    return substituted(gps_real.cuGetProcAddress(symbol, pfn, version, flags), pfn);
}

CUresult gps_on_cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *status) {
    return substituted(gps_real.cuGetProcAddress_v2(symbol, pfn, version, flags, status), pfn);
}
