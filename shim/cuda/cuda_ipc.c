/* cuda_ipc.c - CUDA's handles of memory and events: exported, opened, closed. */
#include <string.h>

#include "calls/events.h"
#include "calls/handles.h"
#include "hooks.h"

/* --- memory --- */

static int cuda_ipc_handle_get(uint8_t *handle, uint64_t pointer) {
    return (int)gps_real.cuIpcGetMemHandle((CUipcMemHandle *)handle, pointer);
}

CUresult gps_on_cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer) {
    return (CUresult)gps_handle_get((uint8_t *)handle, pointer, cuda_ipc_handle_get);
}

/* One version of the function's ABI, and the driver's function for it. */
#define OPEN(name)                                                                                 \
    static int real_##name(const uint8_t *handle, unsigned flags, uint64_t *pointer) {             \
        CUipcMemHandle bytes;                                                                      \
        CUdeviceptr opened;                                                                        \
        memcpy(&bytes, handle, sizeof(bytes));                                                     \
        const CUresult result = gps_real.name(pointer ? &opened : NULL, bytes, flags);             \
        if (result == CUDA_SUCCESS && pointer)                                                     \
            *pointer = opened;                                                                     \
        return (int)result;                                                                        \
    }                                                                                              \
    CUresult gps_on_##name(CUdeviceptr *out, CUipcMemHandle handle, unsigned int flags) {          \
        uint64_t pointer;                                                                          \
        const int code =                                                                           \
            gps_handle_open((uint8_t *)&handle, flags, out ? &pointer : NULL, real_##name);        \
        if (code == CUDA_SUCCESS && out)                                                           \
            *out = pointer;                                                                        \
        return (CUresult)code;                                                                     \
    }
OPEN(cuIpcOpenMemHandle)
OPEN(cuIpcOpenMemHandle_v2)

GPS_ENDS(cuIpcCloseMemHandle, CUdeviceptr, gps_handle_close)

/* --- events --- */

static enum gps_event_kind cuda_event_kind(unsigned int flags) {
    return !(flags & CU_EVENT_INTERPROCESS)  ? GPS_EVENT_PRIVATE
           : flags & CU_EVENT_DISABLE_TIMING ? GPS_EVENT_SHARED
                                             : GPS_EVENT_SHARED_AND_TIMED;
}

static CUresult cuda_event_created(CUresult result, const CUevent *out, enum gps_event_kind kind) {
    if (out)
        gps_event_created((int)result, result == CUDA_SUCCESS ? (uintptr_t)*out : 0, kind);
    return result;
}

CUresult gps_on_cuEventCreate(CUevent *out, unsigned int flags) {
    return cuda_event_created(gps_real.cuEventCreate(out, flags), out, cuda_event_kind(flags));
}

CUresult gps_on_cuEventCreateFromEGLSync(CUevent *out, void *sync, unsigned int flags) {
    return cuda_event_created(gps_real.cuEventCreateFromEGLSync(out, sync, flags), out,
                              GPS_EVENT_PRIVATE);
}

static int cuda_ipc_event_handle_get(uint64_t event, uint8_t *handle) {
    return (int)gps_real.cuIpcGetEventHandle((CUipcEventHandle *)handle, (CUevent)event);
}

CUresult gps_on_cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event) {
    return (CUresult)gps_event_export((uintptr_t)event, (uint8_t *)handle,
                                      cuda_ipc_event_handle_get);
}

static int cuda_ipc_event_handle_open(const uint8_t *handle, uint64_t *event) {
    CUipcEventHandle bytes;
    CUevent opened;
    memcpy(&bytes, handle, sizeof(bytes));
    const CUresult result = gps_real.cuIpcOpenEventHandle(event ? &opened : NULL, bytes);
    if (result == CUDA_SUCCESS && event)
        *event = (uintptr_t)opened;
    return (int)result;
}

CUresult gps_on_cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle handle) {
    uint64_t event;
    const int code =
        gps_event_open((uint8_t *)&handle, out ? &event : NULL, cuda_ipc_event_handle_open);
    if (code == CUDA_SUCCESS && out)
        *out = (CUevent)event;
    return (CUresult)code;
}

GPS_ENDS(cuEventDestroy, CUevent, gps_event_destroy)
GPS_ENDS(cuEventDestroy_v2, CUevent, gps_event_destroy)
