/*
 * driver.h - the real libcuda of this process: found, its addresses known, its operations at hand.
 *
 * Owns the one attachment to libcuda.so.1 (doors/attachment.h). After attaching everything here is
 * constant and may be read from any thread.
 */
#pragma once

#define __CUDA_API_VERSION_INTERNAL  /* old ABI names are declared, new ones not renamed by macros \
                                      */
#include <cuda.h>
#include <stdbool.h>

/* cudaEGL.h has it, but needs EGL's headers; an EGLSyncKHR is a void pointer. */
CUresult CUDAAPI cuEventCreateFromEGLSync(CUevent *event, void *sync, unsigned int flags);

#if CUDA_VERSION < 13020 /* none of its members are read */
typedef struct CUstreamCigCaptureParams_st CUstreamCigCaptureParams;
#endif

/* cuda.h has the per-thread variants only as other meanings of the names without the suffix. */
#define FUNCTION(name, parameters, arguments) CUresult CUDAAPI name parameters;
#include "hooks.def"

/* The hooked functions' real addresses; NULL: this driver does not have the function. Where another
 * library is behind us, they lead to it (chain.h). */
struct gps_real {
#define FUNCTION(name, parameters, arguments) __typeof__(name) *name;
#include "hooks.def"
};
extern struct gps_real gps_real;

/* Functions of libcuda that we call and do not hook; the same goes for their addresses. */
#define GPS_CALLS(ROW)                                                                             \
    ROW(cuCtxFromGreenCtx)                                                                         \
    ROW(cuCtxGetApiVersion)                                                                        \
    ROW(cuCtxGetCurrent)                                                                           \
    ROW(cuCtxGetDevice)                                                                            \
    ROW(cuCtxPushCurrent_v2)                                                                       \
    ROW(cuCtxPopCurrent_v2)                                                                        \
    ROW(cuDeviceCanAccessPeer)                                                                     \
    ROW(cuDeviceGetAttribute)                                                                      \
    ROW(cuDeviceGetCount)                                                                          \
    ROW(cuDeviceGetMemPool)                                                                        \
    ROW(cuDeviceGetUuid)                                                                           \
    ROW(cuDeviceGetUuid_v2)                                                                        \
    ROW(cuDevicePrimaryCtxGetState)                                                                \
    ROW(cuDevicePrimaryCtxRetain)                                                                  \
    ROW(cuFuncGetName)                                                                             \
    ROW(cuFuncGetParamInfo)                                                                        \
    ROW(cuGraphChildGraphNodeGetGraph)                                                             \
    ROW(cuGraphGetNodes)                                                                           \
    ROW(cuGraphKernelNodeGetAttribute)                                                             \
    ROW(cuGraphKernelNodeGetParams_v2)                                                             \
    ROW(cuGraphMemcpyNodeGetParams)                                                                \
    ROW(cuGraphMemsetNodeGetParams)                                                                \
    ROW(cuGraphNodeGetType)                                                                        \
    ROW(cuKernelGetName)                                                                           \
    ROW(cuKernelGetParamInfo)                                                                      \
    ROW(cuMemGetAllocationGranularity)                                                             \
    ROW(cuMemFreeHost)                                                                             \
    ROW(cuMemGetInfo_v2)                                                                           \
    ROW(cuMemHostAlloc)                                                                            \
    ROW(cuMemPoolGetAttribute)                                                                     \
    ROW(cuStreamGetCtx)                                                                            \
    ROW(cuStreamIsCapturing)                                                                       \
    ROW(cuEventRecord)                                                                             \
    ROW(cuLaunchHostFunc)                                                                          \
    ROW(cuLaunchKernel)                                                                            \
    ROW(cuModuleGetFunction)                                                                       \
    ROW(cuModuleLoadData)                                                                          \
    ROW(cuStreamCreateWithPriority)                                                                \
    ROW(cuThreadExchangeStreamCaptureMode)

struct gps_calls {
#define CALL_SLOT(name) __typeof__(name) *name;
    GPS_CALLS(CALL_SLOT)
#undef CALL_SLOT
};
extern struct gps_calls gps_calls;

/* Finds the libcuda that the program has loaded. True when attached, now or before. */
bool gps_driver_attach(void);
/* The same when the address lies in a libcuda. */
bool gps_driver_attach_by(const void *address);
/* Whether the address lies in the attached libcuda. */
bool gps_driver_has(const void *address);
/* Whether libcuda has a symbol of this name. Attaches. */
bool gps_driver_exports(const char *name);

/* Whether a caller is a library behind us, called between the program and the driver. */
bool gps_driver_has_behind(const void *caller);

/* The primary context of a device while it is active, else NULL. Never activates one. */
CUcontext gps_driver_primary(CUdevice device);
/* Whether a context still exists. */
bool gps_driver_has_context(CUcontext context);
