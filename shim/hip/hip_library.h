/*
 * hip_library.h - the real libamdhip64 of this process: found, its addresses known.
 *
 * Owns the one attachment to it (doors/attachment.h): the system's libamdhip64.so.N, or the copy
 * that a package carries under the bare name. If there are several, the first that is found is
 * attached. After attaching everything here is constant and may be read from any thread.
 */
#pragma once

#include <stdbool.h>

#include "hip_abi.h"

/* The hooked functions' real addresses; NULL: this runtime does not have it. */
struct gps_hip_real {
#define HIP(kind, name, parameters, arguments) __typeof__(name) *name;
#include "hip_hooks.def"
};
extern struct gps_hip_real gps_hip_real;

/* Functions that we call and do not hook; the same goes for their addresses. */
#define GPS_HIP_CALLS(ROW)                                                                         \
    ROW(hipDeviceCanAccessPeer)                                                                    \
    ROW(hipDeviceGetUuid)                                                                          \
    ROW(hipDeviceSynchronize)                                                                      \
    ROW(hipGetDevice)                                                                              \
    ROW(hipGetDeviceCount)                                                                         \
    ROW(hipMemGetAddressRange)                                                                     \
    ROW(hipMemGetInfo)                                                                             \
    ROW(hipPointerGetAttributes)                                                                   \
    ROW(hipRuntimeGetVersion)                                                                      \
    ROW(hipSetDevice)                                                                              \
    ROW(hipStreamIsCapturing)                                                                      \
    ROW(hipStreamSynchronize)                                                                      \
    ROW(hipThreadExchangeStreamCaptureMode)

struct gps_hip_calls {
#define GPS_HIP_SLOT(name) __typeof__(name) *name;
    GPS_HIP_CALLS(GPS_HIP_SLOT)
#undef GPS_HIP_SLOT
};
extern struct gps_hip_calls gps_hip_calls;

/* Finds the runtime that the program has loaded. True when attached, now or before. */
bool gps_hip_attach(void);
/* The same when the address lies in such a library. */
bool gps_hip_attach_by(const void *address);

/* The major version of the attached runtime, by which its calls differ; 0: not known. */
int gps_hip_generation(void);
