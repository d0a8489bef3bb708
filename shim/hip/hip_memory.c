/* hip_memory.c - HIP's allocations and frees, and the reset of a device. */
#include "calls/contexts.h"
#include "calls/memory.h"
#include "hip_hooks.h"

/* --- allocation --- */

struct linear {
    struct gps_allocation asked;
    void **out;
    unsigned flags;
};
struct pitched {
    struct gps_allocation asked;
    void **out;
    size_t *pitch;
    struct gps_rows rows;
    unsigned element;
};
struct boxed {
    struct gps_allocation asked;
    hipPitchedPtr *out;
    hipExtent extent;
};

/* `given`: what the program's call has, `arguments` those of the runtime's. What may answer 0 and
 * give no memory is the runtime's alone: of size 0. `note` and `tell` follow success: the
 * runtime's, and that of all. The rest says what is asked for. */
#define ALLOCATE(name, kind, parameters, given, arguments, is_some, note, tell, ...)               \
    static int real_##name(struct gps_allocation *asked) {                                         \
        struct kind *const call = (struct kind *)asked;                                            \
        const hipError_t result = gps_hip_real.name arguments;                                     \
        if (result == GPS_OK) {                                                                    \
            asked->pointer = (uintptr_t)*call->out;                                                \
            note;                                                                                  \
        }                                                                                          \
        return result;                                                                             \
    }                                                                                              \
    hipError_t gps_on_##name parameters {                                                          \
        struct kind call = {.asked.call = real_##name, .out = out, __VA_ARGS__};                   \
        if (!out || !(is_some))                                                                    \
            return gps_hip_real.name given;                                                        \
        const int code = gps_memory_allocate(&call.asked);                                         \
        if (code == GPS_OK) {                                                                      \
            *out = (void *)call.asked.pointer;                                                     \
            tell;                                                                                  \
        }                                                                                          \
        return code;                                                                               \
    }

ALLOCATE(hipMalloc, linear, (void **out, size_t size), (out, size), (call->out, asked->size), size,
         , , .asked.size = size, .asked.shareable = true)

/* The flags choose how memory is cached, or signals: only without any it is as hipMalloc's. */
ALLOCATE(hipExtMallocWithFlags, linear, (void **out, size_t size, unsigned flags),
         (out, size, flags), (call->out, asked->size, call->flags), size, , , .asked.size = size,
         .asked.shareable = flags == 0, .flags = flags)

/* One row tells the pitch. Its free waits for the device. */
static int find_pitch(struct gps_allocation *asked) {
    struct pitched row = *(struct pitched *)asked;
    void *out;
    size_t pitch;
    row.out = &out;
    row.pitch = &pitch;
    row.rows.count = 1;
    const int code = asked->call(&row.asked);
    if (code == GPS_OK) {
        asked->rows->pitch = pitch;
        gps_hip_real.hipFree(out);
    }
    return code;
}

/* The runtime's call may be for one row, with rows of its own, or the program's. */
#define ALLOCATE_PITCH(name, parameters, given, arguments, ...)                                    \
    ALLOCATE(name, pitched, parameters, given, arguments, pitch &&width &&height,                  \
             call->rows.pitch = *call->pitch, *pitch = call.rows.pitch, .asked.size = width,       \
             .asked.rows = &call.rows, .asked.shareable = true, .pitch = pitch,                    \
             .rows = {height, 0, find_pitch}, __VA_ARGS__)
ALLOCATE_PITCH(hipMallocPitch, (void **out, size_t *pitch, size_t width, size_t height),
               (out, pitch, width, height), (call->out, call->pitch, asked->size, call->rows.count),
               .element = 0)
ALLOCATE_PITCH(hipMemAllocPitch,
               (hipDeviceptr_t * out, size_t *pitch, size_t width, size_t height, unsigned element),
               (out, pitch, width, height, element),
               (call->out, call->pitch, asked->size, call->rows.count, call->element),
               .element = element)

/* No rule takes a box: what stands in its pitched pointer is the runtime's. */
static int real_3d(struct gps_allocation *asked) {
    const struct boxed *call = (struct boxed *)asked;
    const hipError_t result = gps_hip_real.hipMalloc3D(call->out, call->extent);
    if (result == GPS_OK) {
        asked->pointer = (uintptr_t)call->out->ptr;
        asked->size = call->out->pitch * call->extent.height * call->extent.depth;
    }
    return result;
}

hipError_t gps_on_hipMalloc3D(hipPitchedPtr *out, hipExtent extent) {
    struct boxed call = {.asked = {.call = real_3d}, .out = out, .extent = extent};
    if (!out || !extent.width || !extent.height || !extent.depth)
        return gps_hip_real.hipMalloc3D(out, extent);
    return gps_memory_allocate(&call.asked);
}

/* --- free --- */

static int real_free(uint64_t pointer, void *stream) {
    (void)stream;
    return gps_hip_real.hipFree((void *)pointer);
}

hipError_t gps_on_hipFree(void *pointer) {
    return gps_memory_free((uintptr_t)pointer, &(struct gps_release){real_free, NULL, false});
}

/* It frees memory of hipMalloc, too. */
static int real_free_async(uint64_t pointer, void *stream) {
    return gps_hip_real.hipFreeAsync((void *)pointer, stream);
}

hipError_t gps_on_hipFreeAsync(void *pointer, hipStream_t stream) {
    return gps_memory_free((uintptr_t)pointer,
                           &(struct gps_release){real_free_async, stream, true});
}

/* --- the end of all that is on a device --- */

static int real_reset(uint64_t device) {
    (void)device; /* the current one */
    return gps_hip_real.hipDeviceReset();
}

hipError_t gps_on_hipDeviceReset(void) {
    int device;
    return gps_hip_calls.hipGetDevice && gps_hip_calls.hipGetDevice(&device) == GPS_OK
               ? gps_context_end((uint64_t)device, real_reset, GPS_DEVICE_RESET)
               : gps_hip_real.hipDeviceReset();
}
