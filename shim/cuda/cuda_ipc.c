/* cuda_ipc.c - CUDA's handles of memory and events: exported, opened, closed. */
#include <string.h>

#include "calls/handles.h"
#include "findings/diagnose.h"
#include "hooks.h"
#include "ipc/event.h"

/* --- memory --- */

static int get_handle(uint8_t *handle, uint64_t pointer) {
    return (int)gps_real.cuIpcGetMemHandle((CUipcMemHandle *)handle, pointer);
}

CUresult gps_on_cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer) {
    return (CUresult)gps_handle_get((uint8_t *)handle, pointer, get_handle);
}

/* One version of the function's ABI, and how the driver is asked for it. */
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

static int close_handle(uint64_t pointer) {
    return (int)gps_real.cuIpcCloseMemHandle(pointer);
}

CUresult gps_on_cuIpcCloseMemHandle(CUdeviceptr pointer) {
    return (CUresult)gps_handle_close(pointer, close_handle);
}

/* --- events --- */

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
