/* hip_ipc.c - HIP's handles of memory and events: exported, opened, closed. The rooms below get
 * them in their plain form (hip_handle.h). */
#include <string.h>

#include "calls/events.h"
#include "calls/handles.h"
#include "driver/driver_ops.h"
#include "hip_handle.h"
#include "hip_hooks.h"

/* --- memory --- */

/* A call's own handle around the plain one, whose address the rooms below hand back. */
struct asked {
    uint8_t plain[GPS_HANDLE_BYTES];
    void *given; /* the program's, to get */
    const hipIpcMemHandle_t *bytes;
    bool answered; /* by the runtime: a get with a handle, other calls with any code */
    hipError_t told;
};

static int hip_ipc_handle_get(uint8_t *plain, uint64_t pointer) {
    struct asked *asked = (struct asked *)plain;
    const hipError_t result = gps_hip_real.hipIpcGetMemHandle(asked->given, (void *)pointer);
    asked->answered = result == GPS_OK;
    if (asked->answered)
        gps_hip_plain_handle(asked->given, plain);
    return result;
}

/* For memory that a rule gave the program gets the plain handle, which opens as well. */
hipError_t gps_on_hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *pointer) {
    struct asked asked = {.given = handle};
    if (!handle) {
        gps_handle_no_output();
        return gps_hip_real.hipIpcGetMemHandle(handle, pointer);
    }
    const int code = gps_handle_get(asked.plain, (uintptr_t)pointer, hip_ipc_handle_get);
    if (code == GPS_OK && !asked.answered)
        memcpy(handle, asked.plain, GPS_HANDLE_BYTES);
    return code;
}

/* The rooms below take a common code for memory or an object that does not fit the handle or the
 * call. The program gets the runtime's own code. */
static int to_common(struct asked *asked, hipError_t result, hipError_t own) {
    asked->answered = true;
    asked->told = result;
    return result == own ? GPS_INVALID_HANDLE : result;
}
static hipError_t to_own(const struct asked *asked, int code, hipError_t own) {
    return code != GPS_INVALID_HANDLE ? code : asked->answered ? asked->told : own;
}

static int hip_ipc_handle_open(const uint8_t *plain, unsigned flags, uint64_t *pointer) {
    struct asked *asked = (struct asked *)plain;
    void *opened;
    const hipError_t result = gps_hip_real.hipIpcOpenMemHandle(&opened, *asked->bytes, flags);
    if (result == GPS_OK)
        *pointer = (uintptr_t)opened;
    return to_common(asked, result, HIP_ERROR_INVALID_DEVICE_POINTER);
}

/* An open not made gets the runtime's code for lost memory, which it checks after the flags. */
static hipError_t refused(unsigned flags) {
    return flags == gps_ops->open_flags() ? HIP_ERROR_INVALID_DEVICE_POINTER : GPS_INVALID_VALUE;
}

hipError_t gps_on_hipIpcOpenMemHandle(void **out, hipIpcMemHandle_t handle, unsigned flags) {
    struct asked asked = {.bytes = &handle};
    uint64_t pointer;
    if (!out) {
        gps_handle_no_output();
        return gps_hip_real.hipIpcOpenMemHandle(out, handle, flags);
    }
    gps_hip_plain_handle((uint8_t *)&handle, asked.plain);
    const int code = gps_handle_open(asked.plain, flags, &pointer, hip_ipc_handle_open);
    if (code == GPS_OK) {
        *out = (void *)pointer;
        gps_handle_opened_at_base(pointer, gps_hip_handle_offset((uint8_t *)&handle));
    }
    return code == GPS_INVALID_VALUE && !asked.answered
               ? refused(flags)
               : to_own(&asked, code, HIP_ERROR_INVALID_DEVICE_POINTER);
}

static int close_handle(uint64_t pointer) {
    return gps_hip_real.hipIpcCloseMemHandle((void *)pointer);
}

hipError_t gps_on_hipIpcCloseMemHandle(void *pointer) {
    return gps_handle_close((uintptr_t)pointer, close_handle);
}

/* --- events --- */

static enum gps_event_kind hip_event_kind(unsigned flags) {
    return !(flags & HIP_EVENT_INTERPROCESS)  ? GPS_EVENT_PRIVATE
           : flags & HIP_EVENT_DISABLE_TIMING ? GPS_EVENT_SHARED
                                              : GPS_EVENT_SHARED_AND_TIMED;
}

static hipError_t hip_event_created(hipError_t result, const hipEvent_t *out,
                                    enum gps_event_kind kind) {
    if (out)
        gps_event_created(result, result == GPS_OK ? (uintptr_t)*out : 0, kind);
    return result;
}

hipError_t gps_on_hipEventCreate(hipEvent_t *out) {
    return hip_event_created(gps_hip_real.hipEventCreate(out), out, GPS_EVENT_PRIVATE);
}

hipError_t gps_on_hipEventCreateWithFlags(hipEvent_t *out, unsigned flags) {
    return hip_event_created(gps_hip_real.hipEventCreateWithFlags(out, flags), out,
                             hip_event_kind(flags));
}

static int destroy_event(uint64_t event) {
    return gps_hip_real.hipEventDestroy((hipEvent_t)event);
}

/* A second destroy that is not let through gets the runtime's code. */
hipError_t gps_on_hipEventDestroy(hipEvent_t event) {
    const int code = gps_event_destroy((uintptr_t)event, destroy_event);
    return event && code == GPS_INVALID_HANDLE ? HIP_ERROR_CONTEXT_IS_DESTROYED : code;
}

static int hip_ipc_event_handle_get(uint64_t event, uint8_t *plain) {
    struct asked *asked = (struct asked *)plain;
    const hipError_t result = gps_hip_real.hipIpcGetEventHandle(asked->given, (hipEvent_t)event);
    if (result == GPS_OK && asked->given)
        gps_hip_plain_event_handle(asked->given, plain);
    return to_common(asked, result, HIP_ERROR_INVALID_CONFIGURATION);
}

hipError_t gps_on_hipIpcGetEventHandle(hipIpcEventHandle_t *handle, hipEvent_t event) {
    struct asked asked = {.given = handle};
    if (!handle) {
        gps_handle_no_output();
        return gps_hip_real.hipIpcGetEventHandle(handle, event);
    }
    const int code = gps_event_export((uintptr_t)event, asked.plain, hip_ipc_event_handle_get);
    return to_own(&asked, code, HIP_ERROR_INVALID_CONFIGURATION);
}

static int hip_ipc_event_handle_open(const uint8_t *plain, uint64_t *event) {
    const struct asked *asked = (const struct asked *)plain;
    hipIpcEventHandle_t bytes;
    hipEvent_t opened;
    memcpy(&bytes, asked->bytes, sizeof(bytes));
    const hipError_t result = gps_hip_real.hipIpcOpenEventHandle(&opened, bytes);
    if (result == GPS_OK)
        *event = (uintptr_t)opened;
    return result;
}

hipError_t gps_on_hipIpcOpenEventHandle(hipEvent_t *out, hipIpcEventHandle_t handle) {
    struct asked asked = {.bytes = (const hipIpcMemHandle_t *)&handle};
    uint64_t event;
    if (!out) {
        gps_handle_no_output();
        return gps_hip_real.hipIpcOpenEventHandle(out, handle);
    }
    gps_hip_plain_event_handle((uint8_t *)&handle, asked.plain);
    const int code = gps_event_open(asked.plain, &event, hip_ipc_event_handle_open);
    if (code == GPS_OK)
        *out = (hipEvent_t)event;
    return code;
}
