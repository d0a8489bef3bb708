/*
 * driver_calls.h - functions of libcuda that we call and do not hook.
 *
 * Filled in by driver.c when it attaches, constant from then on; NULL: this driver does not have
 * it.
 */
#pragma once

#include "driver.h"

#define GPS_CALLS(ROW)                                                                             \
    ROW(cuCtxGetApiVersion)                                                                        \
    ROW(cuCtxGetCurrent)                                                                           \
    ROW(cuCtxGetDevice)                                                                            \
    ROW(cuCtxPushCurrent_v2)                                                                       \
    ROW(cuCtxPopCurrent_v2)                                                                        \
    ROW(cuCtxSynchronize)                                                                          \
    ROW(cuDeviceCanAccessPeer)                                                                     \
    ROW(cuDeviceGetAttribute)                                                                      \
    ROW(cuDeviceGetCount)                                                                          \
    ROW(cuDeviceGetUuid)                                                                           \
    ROW(cuDeviceGetUuid_v2)                                                                        \
    ROW(cuDevicePrimaryCtxGetState)                                                                \
    ROW(cuDevicePrimaryCtxRetain)                                                                  \
    ROW(cuMemAddressFree)                                                                          \
    ROW(cuMemAddressReserve)                                                                       \
    ROW(cuMemCreate)                                                                               \
    ROW(cuMemExportToShareableHandle)                                                              \
    ROW(cuMemGetAddressRange_v2)                                                                   \
    ROW(cuMemGetAllocationGranularity)                                                             \
    ROW(cuMemHostRegister_v2)                                                                      \
    ROW(cuMemImportFromShareableHandle)                                                            \
    ROW(cuMemMap)                                                                                  \
    ROW(cuMemRelease)                                                                              \
    ROW(cuMemSetAccess)                                                                            \
    ROW(cuMemUnmap)                                                                                \
    ROW(cuMemcpyDtoD_v2_ptds)                                                                      \
    ROW(cuMemcpyDtoH_v2_ptds)                                                                      \
    ROW(cuStreamIsCapturing)                                                                       \
    ROW(cuPointerGetAttribute)                                                                     \
    ROW(cuStreamSynchronize)                                                                       \
    ROW(cuThreadExchangeStreamCaptureMode)

struct gps_calls {
#define CALL_SLOT(name) __typeof__(name) *name;
    GPS_CALLS(CALL_SLOT)
#undef CALL_SLOT
};
extern struct gps_calls gps_calls;
