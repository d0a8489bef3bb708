/* cuda_ipc.c - CUDA's handles of memory and events: exported, opened, closed. */
#include <string.h>

#include "calls/memory.h"
#include "driver/driver_ops.h"
#include "findings/diagnose.h"
#include "hooks.h"
#include "ipc/event.h"
#include "ipc/export.h"
#include "ipc/import_close.h"
#include "ipc/open_cache.h"
#include "ipc/pid_collision.h"
#include "vmm/vmm_region.h"

CUresult gps_on_cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer) {
    uint8_t *const bytes = (uint8_t *)handle;
    int code;
    if (!handle)
        return gps_real.cuIpcGetMemHandle(handle, pointer);
    if (gps_memory_export_denied(pointer, &code))
        return (CUresult)code;
    if (gps_vmm_region_token(pointer, bytes, &code))
        return (CUresult)code;
    const CUresult result = gps_real.cuIpcGetMemHandle(handle, pointer);
    if (result == CUDA_SUCCESS)
        gps_export_first(pointer, bytes);
    else if (result == CUDA_ERROR_INVALID_VALUE && gps_import_handle(pointer, bytes))
        return CUDA_SUCCESS;
    else
        gps_diagnose_export(pointer, (int)result);
    return result;
}

/* Writes *out as the driver does: only with success. */
static CUresult open_token(struct gps_opening *opening, CUdeviceptr *out, unsigned int flags) {
    uint64_t pointer;
    const int code = gps_import_token(opening, flags, &pointer);
    if (code == GPS_OK)
        *out = pointer;
    return (CUresult)code;
}

/* The same, where the driver took the handle for this process's own. */
static CUresult open_despite_pid(const struct gps_opening *opening, CUdeviceptr *out) {
    uint64_t pointer;
    const int code = gps_pid_collision_open(&opening->import, &pointer);
    if (code == GPS_OK)
        *out = pointer;
    return (CUresult)code;
}

typedef CUresult open_fn(CUdeviceptr *out, CUipcMemHandle handle, unsigned int flags);

struct attempt {
    struct gps_opening *opening;
    open_fn *real;
    CUdeviceptr *out;
    CUipcMemHandle handle;
    unsigned int flags;
};

static int open_once(void *arg) {
    const struct attempt *of = arg;
    const bool token = gps_vmm_region_is_token((const uint8_t *)&of->handle);
    const CUresult result = token ? open_token(of->opening, of->out, of->flags)
                                  : of->real(of->out, of->handle, of->flags);
    return (int)(result == CUDA_ERROR_INVALID_CONTEXT ? open_despite_pid(of->opening, of->out)
                                                      : result);
}

static CUresult opened_first(struct gps_opening *opening, open_fn *real, CUdeviceptr *out,
                             CUipcMemHandle handle, unsigned int flags) {
    struct attempt attempt = {opening, real, out, handle, flags};
    int code;
    if (!gps_import_prepare(opening, (const uint8_t *)&handle, &code))
        return (CUresult)code;
    const CUresult result =
        (CUresult)gps_open_cache_beside(open_once, &attempt, &opening->import.region);
    if (result == CUDA_SUCCESS) {
        gps_import_commit(opening, *out);
    } else {
        gps_import_roll_back(opening);
        gps_diagnose_open(&opening->import, opening->recorded ? &opening->record : NULL, flags,
                          (int)result);
    }
    return result;
}

/* False: the driver refuses, and is asked again on the long way; or another thread has closed it
 * for the last time, and it is a first open again. */
static bool opened_again(const struct gps_opening *opening, open_fn *real, CUdeviceptr *out,
                         CUipcMemHandle handle, unsigned int flags) {
    CUdeviceptr pointer;
    if (real(&pointer, handle, flags) != CUDA_SUCCESS)
        return false;
    if (!gps_registry_count_open(pointer, &opening->import.region)) {
        gps_real.cuIpcCloseMemHandle(pointer);
        return false;
    }
    *out = pointer;
    return true;
}

static CUresult opened(open_fn *real, CUdeviceptr *out, CUipcMemHandle handle, unsigned int flags) {
    const uint8_t *bytes = (const uint8_t *)&handle;
    struct gps_opening opening;
    uint64_t cached;
    if (!out)
        return real(out, handle, flags);
    if (gps_open_cache_active && gps_open_cache_open(bytes, flags, &cached)) {
        *out = cached;
        return CUDA_SUCCESS;
    }
    if (gps_import_begin(&opening, bytes, true)) {
        if (opened_again(&opening, real, out, handle, flags))
            return CUDA_SUCCESS;
        gps_import_begin(&opening, bytes, false);
    }
    return opened_first(&opening, real, out, handle, flags);
}

#define OPEN(name)                                                                                 \
    CUresult gps_on_##name(CUdeviceptr *out, CUipcMemHandle handle, unsigned int flags) {          \
        return opened(gps_real.name, out, handle, flags);                                          \
    }
OPEN(cuIpcOpenMemHandle)
OPEN(cuIpcOpenMemHandle_v2)

static int close_mem(uint64_t pointer) {
    return (int)gps_real.cuIpcCloseMemHandle(pointer);
}

CUresult gps_on_cuIpcCloseMemHandle(CUdeviceptr pointer) {
    const int code = gps_import_close(pointer, close_mem);
    if (code != GPS_OK)
        gps_diagnose_close(pointer, code);
    return (CUresult)code;
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
