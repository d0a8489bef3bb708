/* cuda_event.c - CUDA's events, as far as other processes may know them. */
#include <string.h>

#include "audit/diagnose.h"
#include "hooks.h"
#include "ipc/event.h"

CUresult gps_on_cuEventCreate(CUevent *out, unsigned int flags) {
    const CUresult result = gps_real.cuEventCreate(out, flags);
    const bool interprocess = (flags & CU_EVENT_INTERPROCESS) != 0;
    if (result == CUDA_SUCCESS)
        gps_event_created((uintptr_t)*out, interprocess);
    else if (out && interprocess && !(flags & CU_EVENT_DISABLE_TIMING))
        gps_diagnose_share_event(0, (int)result);
    return result;
}

CUresult gps_on_cuEventCreateFromEGLSync(CUevent *out, void *sync, unsigned int flags) {
    const CUresult result = gps_real.cuEventCreateFromEGLSync(out, sync, flags);
    if (result == CUDA_SUCCESS)
        gps_event_created((uintptr_t)*out, false);
    return result;
}

CUresult gps_on_cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event) {
    uint8_t bytes[sizeof(*handle)];
    const CUresult result = gps_real.cuIpcGetEventHandle(handle, event);
    if (result == CUDA_SUCCESS) {
        memcpy(bytes, handle, sizeof(bytes));
        gps_event_exported((uintptr_t)event, bytes);
    } else if (event) {
        gps_diagnose_share_event((uintptr_t)event, (int)result);
    }
    return result;
}

CUresult gps_on_cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle handle) {
    uint8_t bytes[sizeof(handle)];
    memcpy(bytes, &handle, sizeof(bytes));
    const CUresult result = gps_real.cuIpcOpenEventHandle(out, handle);
    if (result == CUDA_SUCCESS)
        gps_event_opened((uintptr_t)*out, bytes);
    else
        gps_diagnose_open_event(bytes, (int)result);
    return result;
}

/* One version of the function's ABI, and how the driver is asked for it. */
#define DESTROY(name)                                                                              \
    static int real_##name(uint64_t event) {                                                       \
        return (int)gps_real.name((CUevent)event);                                                 \
    }                                                                                              \
    CUresult gps_on_##name(CUevent event) {                                                        \
        return (CUresult)gps_event_destroy((uintptr_t)event, real_##name);                         \
    }
DESTROY(cuEventDestroy)
DESTROY(cuEventDestroy_v2)
