/* cuda_memory.c - CUDA's allocations and frees, in every version of their ABI. */
#include "calls/memory.h"
#include "driver/driver_ops.h"
#include "hooks.h"
#include "ipc/deferred.h"
#include "ipc/open_cache.h"
#include "learn/learner.h"
#include "merge/allocation.h"
#include "merge/merger.h"
#include "rules/rules.h"

/* --- allocation --- */

/* The device is out of memory: whether it is worth another try. */
static bool relieve(CUresult result) {
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        return false;
    const bool ended = gps_open_cache_make_room();
    const bool freed = gps_merge_end_freed(true), cut = gps_merger_relieve();
    return gps_deferred_make_room() || ended || freed || cut;
}

/* What a rule could have taken. */
static void allocated(uint64_t pointer, uint64_t size) {
    gps_memory_allocated(pointer, size);
    gps_learn_allocated(pointer, size, false);
}

CUresult gps_on_cuMemAlloc_v2(CUdeviceptr *out, size_t size) {
    uint64_t pointer;
    int code;
    if (gps_rules_active && out && gps_rules_allocate(size, false, &pointer, &code)) {
        if (code == CUDA_SUCCESS)
            *out = pointer;
        return (CUresult)code;
    }
    gps_merge_make_way(size);
    CUresult result = gps_real.cuMemAlloc_v2(out, size);
    if (relieve(result))
        result = gps_real.cuMemAlloc_v2(out, size);
    if (result == CUDA_SUCCESS)
        allocated(*out, size);
    return result;
}

/* Its 32-bit address cannot hold a region that a rule chose: rules do not apply. */
CUresult gps_on_cuMemAlloc(CUdeviceptr_v1 *out, unsigned int size) {
    const CUresult result = gps_real.cuMemAlloc(out, size);
    if (result == CUDA_SUCCESS)
        gps_memory_allocated(*out, size);
    return result;
}

/* What a rule shares is linear memory: the driver's own pitch for this width, which one row tells,
 * times the rows. Freeing that row waits for the device, so it is asked only where a rule may fit.
 */
static bool share_pitched(CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
                          unsigned int element, CUresult *result) {
    CUdeviceptr row;
    size_t bytes;
    uint64_t pointer;
    int code;
    if (!out || !pitch || !height ||
        gps_real.cuMemAllocPitch_v2(&row, &bytes, width, 1, element) != CUDA_SUCCESS)
        return false;
    gps_real.cuMemFree_v2(row);
    if (height > SIZE_MAX / bytes || !gps_rules_allocate(bytes * height, false, &pointer, &code))
        return false;
    *result = (CUresult)code;
    if (code == CUDA_SUCCESS) {
        *out = pointer;
        *pitch = bytes;
    }
    return true;
}

CUresult gps_on_cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
                                   unsigned int element) {
    CUresult result;
    if (gps_rules_may_fit(width, height) &&
        share_pitched(out, pitch, width, height, element, &result))
        return result;
    gps_merge_make_way(width * height);
    result = gps_real.cuMemAllocPitch_v2(out, pitch, width, height, element);
    if (relieve(result))
        result = gps_real.cuMemAllocPitch_v2(out, pitch, width, height, element);
    if (result == CUDA_SUCCESS)
        allocated(*out, *pitch * height);
    return result;
}

CUresult gps_on_cuMemAllocPitch(CUdeviceptr_v1 *out, unsigned int *pitch, unsigned int width,
                                unsigned int height, unsigned int element) {
    const CUresult result = gps_real.cuMemAllocPitch(out, pitch, width, height, element);
    if (result == CUDA_SUCCESS)
        gps_memory_allocated(*out, (uint64_t)*pitch * height);
    return result;
}

/* In a capture it is a node of a graph, which no rule takes. */
static bool share_pooled(CUdeviceptr *out, size_t size, CUstream stream, CUresult *result) {
    CUstreamCaptureStatus status;
    uint64_t pointer;
    int code;
    if (!out || !gps_calls.cuStreamIsCapturing ||
        gps_calls.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
        status != CU_STREAM_CAPTURE_STATUS_NONE || !gps_rules_allocate(size, true, &pointer, &code))
        return false;
    *result = (CUresult)code;
    if (code == CUDA_SUCCESS)
        *out = pointer;
    return true;
}

/* Other memory of a pool is the driver's alone: CUDA's handles cannot name it. */
#define ALLOCATE_ASYNC(name, own)                                                                  \
    CUresult gps_on_##name(CUdeviceptr *out, size_t size, CUstream stream) {                       \
        CUresult result;                                                                           \
        if (gps_rules_active && share_pooled(out, size, stream ? stream : own, &result))           \
            return result;                                                                         \
        gps_merge_make_way(size);                                                                  \
        result = gps_real.name(out, size, stream);                                                 \
        if (relieve(result))                                                                       \
            result = gps_real.name(out, size, stream);                                             \
        if (result == CUDA_SUCCESS && gps_learn_active &&                                          \
            !gps_ops->capturing((uintptr_t)(stream ? stream : own)))                               \
            gps_learn_allocated(*out, size, true);                                                 \
        return result;                                                                             \
    }
ALLOCATE_ASYNC(cuMemAllocAsync, NULL)
ALLOCATE_ASYNC(cuMemAllocAsync_ptsz, CU_STREAM_PER_THREAD)

/* --- free --- */

#define FREE(name, type)                                                                           \
    static int real_##name(uint64_t pointer, void *stream) {                                       \
        (void)stream;                                                                              \
        return (int)gps_real.name((type)pointer);                                                  \
    }                                                                                              \
    CUresult gps_on_##name(type pointer) {                                                         \
        return (CUresult)gps_memory_free(pointer, (struct gps_release){real_##name, NULL, false}); \
    }
FREE(cuMemFree, CUdeviceptr_v1)
FREE(cuMemFree_v2, CUdeviceptr)

/* It frees memory of cuMemAlloc, too. */
#define FREE_ASYNC(name)                                                                           \
    static int real_##name(uint64_t pointer, void *stream) {                                       \
        return (int)gps_real.name(pointer, stream);                                                \
    }                                                                                              \
    CUresult gps_on_##name(CUdeviceptr pointer, CUstream stream) {                                 \
        return (CUresult)gps_memory_free(pointer,                                                  \
                                         (struct gps_release){real_##name, stream, true});         \
    }
FREE_ASYNC(cuMemFreeAsync)
FREE_ASYNC(cuMemFreeAsync_ptsz)
