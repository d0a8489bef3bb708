/*
 * HIP has devices and hardly any contexts: the context of a device is its ordinal plus one. What
 * merging, the keeper and the open cache need is left out; start.c refuses rules that need it.
 */
#include "hip_hooks.h"

#include <string.h>

#include "calls/entry.h"
#include "driver/driver_ops.h"
#include "hip_handle.h"
#include "hip_library.h"

#define ASK(table, name, ...) ((int)(table.name ? table.name(__VA_ARGS__) : GPS_NOT_INITIALIZED))
#define CALL(name, ...)       ASK(gps_hip_calls, name, __VA_ARGS__)
#define REAL(name, ...)       ASK(gps_hip_real, name, __VA_ARGS__)

/* --- devices --- */

GPS_YIELD(hip_ops_device, (int *ordinal), int, ordinal, CALL(hipGetDevice, &got))

static uint64_t hip_ops_primary(int ordinal) {
    return (uint64_t)ordinal + 1;
}

static int hip_ops_context(uint64_t *out) {
    int ordinal;
    const int code = hip_ops_device(&ordinal);
    if (code == GPS_OK)
        *out = hip_ops_primary(ordinal);
    return code;
}

/* Scopes nest where one call of ours needs two devices. */
enum { DEPTH = 8 };
static __thread struct {
    int devices[DEPTH];
    int depth;
} entered;

static int hip_ops_enter(uint64_t which) {
    int before;
    int code = entered.depth < DEPTH ? hip_ops_device(&before) : GPS_INVALID_CONTEXT;
    if (code == GPS_OK)
        code = CALL(hipSetDevice, (int)which - 1);
    if (code == GPS_OK)
        entered.devices[entered.depth++] = before;
    return code;
}

static void hip_ops_leave(void) {
    (void)CALL(hipSetDevice, entered.devices[--entered.depth]);
}

GPS_YIELD(hip_ops_device_count, (int *count), int, count, CALL(hipGetDeviceCount, &got))

GPS_YIELD(hip_ops_peer, (int here, int there, bool *can), int, can,
          CALL(hipDeviceCanAccessPeer, &got, here, there))

static bool hip_ops_context_exists(uint64_t which) {
    int count;
    return hip_ops_device_count(&count) == GPS_OK && which <= (uint64_t)count;
}

/* We have no objects in a context. */
static void hip_context_forget(uint64_t which) {
    (void)which;
}

static int hip_ops_uuid(int ordinal, uint8_t out[GPS_UUID_BYTES]) {
    hipUUID found;
    const int code = CALL(hipDeviceGetUuid, &found, ordinal);
    if (code == GPS_OK)
        memcpy(out, found.bytes, GPS_UUID_BYTES);
    return code;
}

static int hip_ops_relax(int *mode) {
    int exchanged = *mode;
    const int code = CALL(hipThreadExchangeStreamCaptureMode, &exchanged);
    if (code == GPS_OK)
        *mode = exchanged;
    return code;
}

GPS_YIELD(hip_ops_capturing, (uint64_t stream, bool *captured), int, captured,
          CALL(hipStreamIsCapturing, (hipStream_t)stream, &got))

GPS_PASS(hip_ops_stream_wait, (uint64_t stream), CALL(hipStreamSynchronize, (hipStream_t)stream))

/* --- memory --- */

GPS_YIELD(hip_ops_allocate, (uint64_t size, uint64_t *pointer), void *, pointer,
          REAL(hipMalloc, &got, size))

GPS_PASS(hip_ops_release, (uint64_t pointer), REAL(hipFree, (void *)pointer))

/* A free waits for the device. Without room for the scrap it synchronises the device. */
static int hip_ops_synchronize(void) {
    uint64_t scrap;
    if (hip_ops_allocate(1, &scrap) == GPS_OK)
        return hip_ops_release(scrap);
    const int code = CALL(hipDeviceSynchronize);
    return gps_code_is_of_capture(code) ? GPS_OK : code;
}

static int hip_ops_range(uint64_t pointer, uint64_t *base, uint64_t *size) {
    hipDeviceptr_t start;
    size_t length;
    const int code = CALL(hipMemGetAddressRange, &start, &length, (hipDeviceptr_t)pointer);
    if (code == GPS_OK) {
        *base = (uintptr_t)start;
        *size = length;
    }
    return code;
}

/* The attributes of memory, not HIP_MEMORY_UNREGISTERED, which version 6 answers with success. */
static int attributes_of(uint64_t pointer, hipPointerAttribute_t *out) {
    const int code = CALL(hipPointerGetAttributes, out, (void *)pointer);
    return code == GPS_OK && out->type == HIP_MEMORY_UNREGISTERED && gps_hip_generation() >= 6
               ? GPS_INVALID_VALUE
               : code;
}

static int hip_ops_home(uint64_t pointer, uint64_t *of, int *ordinal) {
    hipPointerAttribute_t found;
    const int code = attributes_of(pointer, &found);
    if (code == GPS_OK) {
        if (of)
            *of = hip_ops_primary(found.device);
        *ordinal = found.device;
    }
    return code;
}

static enum gps_memory_kind hip_ops_kind(uint64_t pointer) {
    hipPointerAttribute_t found;
    if (attributes_of(pointer, &found) != GPS_OK)
        return GPS_MEMORY_UNKNOWN;
    const int host = gps_hip_generation() >= 6 ? HIP_MEMORY_HOST : HIP_MEMORY_HOST_5;
    return found.isManaged      ? GPS_MEMORY_MANAGED
           : found.type == host ? GPS_MEMORY_HOST
                                : GPS_MEMORY_DEVICE;
}

static int hip_ops_memory(uint64_t *available, uint64_t *total) {
    size_t free, all;
    const int code = CALL(hipMemGetInfo, &free, &all);
    if (code != GPS_OK)
        return code;
    *available = free;
    *total = all;
    return GPS_OK;
}

/* --- handles, in their plain form --- */

/* 0 is the value of hipIpcMemLazyEnablePeerAccess before 6.0. */
static unsigned hip_ops_open_flags(void) {
    return gps_hip_generation() >= 6 ? 1 : 0;
}

static int hip_ops_get_handle(uint64_t pointer, uint8_t out[GPS_HANDLE_BYTES]) {
    hipIpcMemHandle_t handle;
    const int code = REAL(hipIpcGetMemHandle, &handle, (void *)pointer);
    if (code == GPS_OK)
        gps_hip_plain_handle((uint8_t *)&handle, out);
    return code;
}

static int hip_ops_open_handle(const uint8_t bytes[GPS_HANDLE_BYTES], uint64_t *pointer) {
    hipIpcMemHandle_t handle;
    void *opened;
    memcpy(&handle, bytes, GPS_HANDLE_BYTES);
    const int code = REAL(hipIpcOpenMemHandle, &opened, handle, hip_ops_open_flags());
    if (code == GPS_OK)
        *pointer = (uintptr_t)opened;
    return code;
}

static int hip_ops_open_handle_as(const uint8_t bytes[GPS_HANDLE_BYTES], uint32_t pid,
                                  uint32_t instead, uint64_t *pointer) {
    uint8_t handle[GPS_HANDLE_BYTES];
    memcpy(handle, bytes, sizeof(handle));
    return gps_hip_handle_set_pid(handle, pid, instead) ? hip_ops_open_handle(handle, pointer)
                                                        : GPS_INVALID_CONTEXT;
}

GPS_PASS(hip_ops_close_handle, (uint64_t pointer), REAL(hipIpcCloseMemHandle, (void *)pointer))

static const struct gps_names names = {
    .vendor = "HIP",
    .start = "hipInit",
    .make_block = "hipMemCreate",
    .export_block = "hipMemExportToShareableHandle",
    .make_pooled = "hipMallocAsync",
    .export_pool = "hipMemPoolExportToShareableHandle",
    .make_managed = "hipMallocManaged",
    .event_shared = "hipEventInterprocess",
    .event_untimed = "hipEventDisableTiming",
};

static const struct gps_operations operations = {
    .vendor = "hip",
    .names = &names,
    .sonames = "libamdhip64.so\0",
    .has_blocks = false,
    .by_range = true,
    GPS_OPERATIONS_OF_ALL(hip_ops),
    .forget = hip_context_forget,
};
_Static_assert(sizeof(hipIpcEventHandle_t) == GPS_HANDLE_BYTES, "handles of events are as wide");
_Static_assert(sizeof(hipIpcMemHandle_t) == GPS_HANDLE_BYTES, "the handle's width is the format's");

static const struct gps_operations *hip_operations_attach(void) {
    return gps_hip_attach() ? &operations : NULL;
}

bool gps_hip_enter(void) {
    return gps_entry_slowly(hip_operations_attach);
}
