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

static int to_pointer(struct gps_allocation *asked, hipError_t result, void *const *out) {
    if (result == GPS_OK)
        asked->pointer = (uintptr_t)*out;
    return result;
}

/* A call for size 0, which may succeed without memory, is the runtime's alone. */
static hipError_t linear(struct linear call) {
    const int code = gps_memory_allocate(&call.asked);
    if (code == GPS_OK)
        *call.out = (void *)call.asked.pointer;
    return code;
}

static int real_malloc(struct gps_allocation *asked) {
    void **const out = ((struct linear *)asked)->out;
    return to_pointer(asked, gps_hip_real.hipMalloc(out, asked->size), out);
}

hipError_t gps_on_hipMalloc(void **out, size_t size) {
    if (!out || !size)
        return gps_hip_real.hipMalloc(out, size);
    return linear((struct linear){.asked = {.call = real_malloc, .size = size, .shareable = true},
                                  .out = out});
}

/* The flags choose how memory is cached, or signals: only without flags it is as hipMalloc's. */
static int real_with_flags(struct gps_allocation *asked) {
    const struct linear *call = (struct linear *)asked;
    return to_pointer(
        asked, gps_hip_real.hipExtMallocWithFlags(call->out, asked->size, call->flags), call->out);
}

hipError_t gps_on_hipExtMallocWithFlags(void **out, size_t size, unsigned flags) {
    if (!out || !size)
        return gps_hip_real.hipExtMallocWithFlags(out, size, flags);
    return linear(
        (struct linear){.asked = {.call = real_with_flags, .size = size, .shareable = flags == 0},
                        .out = out,
                        .flags = flags});
}

/* --- rows --- */

/* One row tells the pitch. Its free waits for the device. */
static int hip_pitch_find(struct gps_allocation *asked) {
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

/* The call may be for one row, with rows of its own, or the program's. */
static int took_rows(struct gps_allocation *asked, hipError_t result) {
    struct pitched *call = (struct pitched *)asked;
    if (result == GPS_OK) {
        asked->pointer = (uintptr_t)*call->out;
        call->rows.pitch = *call->pitch;
    }
    return result;
}

static int real_pitch(struct gps_allocation *asked) {
    const struct pitched *call = (struct pitched *)asked;
    return took_rows(
        asked, gps_hip_real.hipMallocPitch(call->out, call->pitch, asked->size, call->rows.count));
}

static int real_alloc_pitch(struct gps_allocation *asked) {
    const struct pitched *call = (struct pitched *)asked;
    return took_rows(asked, gps_hip_real.hipMemAllocPitch(call->out, call->pitch, asked->size,
                                                          call->rows.count, call->element));
}

static hipError_t pitched(int (*real)(struct gps_allocation *), void **out, size_t *pitch,
                          size_t width, size_t height, unsigned element) {
    struct pitched call = {.asked = {.call = real, .size = width, .shareable = true},
                           .out = out,
                           .pitch = pitch,
                           .rows = {height, 0, hip_pitch_find},
                           .element = element};
    call.asked.rows = &call.rows;
    const int code = gps_memory_allocate(&call.asked);
    if (code == GPS_OK) {
        *out = (void *)call.asked.pointer;
        *pitch = call.rows.pitch;
    }
    return code;
}

hipError_t gps_on_hipMallocPitch(void **out, size_t *pitch, size_t width, size_t height) {
    if (!out || !pitch || !width || !height)
        return gps_hip_real.hipMallocPitch(out, pitch, width, height);
    return pitched(real_pitch, out, pitch, width, height, 0);
}

hipError_t gps_on_hipMemAllocPitch(hipDeviceptr_t *out, size_t *pitch, size_t width, size_t height,
                                   unsigned element) {
    if (!out || !pitch || !width || !height)
        return gps_hip_real.hipMemAllocPitch(out, pitch, width, height, element);
    return pitched(real_alloc_pitch, out, pitch, width, height, element);
}

/* No rule takes a box: the values in its pitched pointer are the runtime's. */
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

/* hipFreeAsync frees memory of hipMalloc, too. */
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
