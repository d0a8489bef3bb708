/* cuda_context.c - the driver's start, access between devices, ends of contexts and modules. */
#include "calls/contexts.h"
#include "hooks.h"
#include "launch_layout.h"

CUresult gps_on_cuInit(unsigned int flags) {
    const CUresult result = gps_real.cuInit(flags);
    if (result == CUDA_SUCCESS)
        gps_lifecycle_driver_ready();
    return result;
}

#define MAKE(name, parameters, arguments)                                                          \
    CUresult gps_on_##name parameters {                                                            \
        const CUresult result = gps_real.name arguments;                                           \
        if (result == CUDA_SUCCESS)                                                                \
            gps_context_made((uintptr_t)*out, device);                                             \
        return result;                                                                             \
    }
MAKE(cuCtxCreate, (CUcontext * out, unsigned int flags, CUdevice device), (out, flags, device))
MAKE(cuCtxCreate_v2, (CUcontext * out, unsigned int flags, CUdevice device), (out, flags, device))
MAKE(cuCtxCreate_v3,
     (CUcontext * out, CUexecAffinityParam *affinity, int count, unsigned int flags,
      CUdevice device),
     (out, affinity, count, flags, device))
MAKE(cuCtxCreate_v4, (CUcontext * out, CUctxCreateParams *how, unsigned int flags, CUdevice device),
     (out, how, flags, device))
MAKE(cuDevicePrimaryCtxRetain, (CUcontext * out, CUdevice device), (out, device))

CUresult gps_on_cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
    const CUresult result = gps_real.cuCtxEnablePeerAccess(peer, flags);
    if (result == CUDA_SUCCESS)
        gps_context_peer_enabled((uintptr_t)peer);
    return result;
}

/* Ends a context, and forgets the layouts of its kernels, which end with it. */
static int cuda_context_end(uint64_t which, gps_context_end_fn *call, enum gps_context_ending how) {
    gps_launch_layouts_forget();
    return gps_context_end(which, call, how);
}
GPS_ENDS(cuCtxDestroy, CUcontext, cuda_context_end, GPS_CONTEXT_DESTROY)
GPS_ENDS(cuCtxDestroy_v2, CUcontext, cuda_context_end, GPS_CONTEXT_DESTROY)
GPS_ENDS(cuCtxDetach, CUcontext, cuda_context_end, GPS_CONTEXT_DETACH)
GPS_ENDS(cuDevicePrimaryCtxReset, CUdevice, cuda_context_end, GPS_DEVICE_RESET)
GPS_ENDS(cuDevicePrimaryCtxReset_v2, CUdevice, cuda_context_end, GPS_DEVICE_RESET)
GPS_ENDS(cuDevicePrimaryCtxRelease, CUdevice, cuda_context_end, GPS_DEVICE_RELEASE)
GPS_ENDS(cuDevicePrimaryCtxRelease_v2, CUdevice, cuda_context_end, GPS_DEVICE_RELEASE)

static int real_destroy_green(uint64_t green) {
    gps_launch_layouts_forget();
    return (int)gps_real.cuGreenCtxDestroy((CUgreenCtx)green);
}
CUresult gps_on_cuGreenCtxDestroy(CUgreenCtx green) {
    CUcontext context = NULL;
    if (!green || !gps_calls.cuCtxFromGreenCtx ||
        gps_calls.cuCtxFromGreenCtx(&context, green) != CUDA_SUCCESS)
        context = NULL;
    return (CUresult)gps_context_destroy_green((uintptr_t)green, (uintptr_t)context,
                                               real_destroy_green);
}

/* This and the next are hooked only in a process that looks at launches. */
CUresult gps_on_cuModuleUnload(CUmodule module) {
    gps_launch_layouts_forget();
    return gps_real.cuModuleUnload(module);
}

CUresult gps_on_cuLibraryUnload(CUlibrary library) {
    gps_launch_layouts_forget();
    return gps_real.cuLibraryUnload(library);
}
