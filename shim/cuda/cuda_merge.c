/* cuda_merge.c - what programs with a merge rule have hooked besides launches and copies: captures,
 * the end of streams, and what the driver says of memory. */
#include "gate/streams.h"
#include "hooks.h"
#include "merge/allocation.h"
#include "merge/write.h"

/* --- captures: none begins while the gate is closed --- */

static CUresult captured(const struct gps_gate_pass *pass, CUresult result) {
    if (result == CUDA_SUCCESS)
        gps_streams_capture_begins();
    gps_gate_leave(pass);
    return result;
}

#define BEGIN_CAPTURE(name, parameters, arguments)                                                 \
    CUresult gps_on_##name parameters {                                                            \
        struct gps_gate_pass pass;                                                                 \
        if (!gps_merge_active)                                                                     \
            return gps_real.name arguments;                                                        \
        gps_gate_enter(&pass);                                                                     \
        return captured(&pass, gps_real.name arguments);                                           \
    }
BEGIN_CAPTURE(cuStreamBeginCapture, (CUstream stream), (stream))
BEGIN_CAPTURE(cuStreamBeginCapture_ptsz, (CUstream stream), (stream))
BEGIN_CAPTURE(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode), (stream, mode))
BEGIN_CAPTURE(cuStreamBeginCapture_v2_ptsz, (CUstream stream, CUstreamCaptureMode mode),
              (stream, mode))
#define TO_GRAPH                                                                                   \
    (CUstream stream, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges,       \
     size_t count, CUstreamCaptureMode mode)
BEGIN_CAPTURE(cuStreamBeginCaptureToGraph, TO_GRAPH, (stream, graph, after, edges, count, mode))
BEGIN_CAPTURE(cuStreamBeginCaptureToGraph_ptsz, TO_GRAPH,
              (stream, graph, after, edges, count, mode))

/* A capture that was invalidated, or left work unjoined, is over, too. */
#define END_CAPTURE(name)                                                                          \
    CUresult gps_on_##name(CUstream stream, CUgraph *graph) {                                      \
        const CUresult result = gps_real.name(stream, graph);                                      \
        if (result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||           \
            result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED)                                          \
            gps_streams_capture_ends();                                                            \
        return result;                                                                             \
    }
END_CAPTURE(cuStreamEndCapture)
END_CAPTURE(cuStreamEndCapture_ptsz)

#define DESTROY_STREAM(name)                                                                       \
    CUresult gps_on_##name(CUstream stream) {                                                      \
        if (gps_merge_active)                                                                      \
            gps_streams_remove((uintptr_t)stream);                                                 \
        return gps_real.name(stream);                                                              \
    }
DESTROY_STREAM(cuStreamDestroy)
DESTROY_STREAM(cuStreamDestroy_v2)

/* --- waits: a kernel that wrote what is merged shows, and what is freed on a stream goes --- */

static CUresult checked(CUresult result) {
    gps_work_checked((int)result);
    return result;
}

static CUresult waited(CUresult result) {
    gps_merge_end_freed(false);
    return checked(result);
}

#define HOOK(name, parameters, arguments, after)                                                   \
    CUresult gps_on_##name parameters {                                                            \
        return after(gps_real.name arguments);                                                     \
    }
#define WAIT(name, parameters, arguments) HOOK(name, parameters, arguments, waited)
#define ASK(name, parameters, arguments)  HOOK(name, parameters, arguments, checked)
WAIT(cuCtxSynchronize, (void), ())
WAIT(cuCtxSynchronize_v2, (CUcontext context), (context))
WAIT(cuStreamSynchronize, (CUstream stream), (stream))
WAIT(cuStreamSynchronize_ptsz, (CUstream stream), (stream))
ASK(cuStreamQuery, (CUstream stream), (stream))
ASK(cuStreamQuery_ptsz, (CUstream stream), (stream))
WAIT(cuEventSynchronize, (CUevent event), (event))
ASK(cuEventQuery, (CUevent event), (event))

/* --- what memory looks like: an allocation, not its blocks --- */

/* Of a block without memory the driver says that there is nothing; all else it refuses holds for an
 * allocation, too. */
CUresult gps_on_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr pointer) {
    uint64_t start, length;
    const CUresult result = gps_real.cuMemGetAddressRange_v2(base, size, pointer);
    if ((result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_FOUND) ||
        !gps_merge_range(pointer, &start, &length))
        return result;
    if (base)
        *base = start;
    if (size)
        *size = length;
    return CUDA_SUCCESS;
}

#define OURS (UINT64_C(1) << 48) /* the driver's own ids count from 1 */

/* Those of which a block's are not its allocation's. */
static bool is_of_allocation(CUpointer_attribute which) {
    return which == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
           which == CU_POINTER_ATTRIBUTE_RANGE_SIZE || which == CU_POINTER_ATTRIBUTE_BUFFER_ID ||
           which == CU_POINTER_ATTRIBUTE_ACCESS_FLAGS;
}

/* Blocks come and go, and some are read-only: the allocation does not, and can be written. */
static void set_as_allocation(CUpointer_attribute which, void *value, CUdeviceptr pointer) {
    uint64_t start, length;
    if (!is_of_allocation(which) || !gps_merge_range(pointer, &start, &length))
        return;
    switch (which) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)value = start;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)value = length;
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)value = OURS + gps_merge_serial(pointer);
        break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        if (*(CUDA_POINTER_ATTRIBUTE_ACCESS_FLAGS *)value == CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ)
            *(CUDA_POINTER_ATTRIBUTE_ACCESS_FLAGS *)value =
                CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
        break;
    default:
        break;
    }
}

/* A block without memory would have no attributes. */
static bool needs_memory(CUdeviceptr pointer) {
    return gps_gate_state & GPS_GATE_BACK && gps_area_near(pointer, 1);
}

CUresult gps_on_cuPointerGetAttribute(void *value, CUpointer_attribute which, CUdeviceptr pointer) {
    if (needs_memory(pointer))
        gps_merge_back_all();
    const CUresult result = gps_real.cuPointerGetAttribute(value, which, pointer);
    if (result == CUDA_SUCCESS)
        set_as_allocation(which, value, pointer);
    return result;
}

CUresult gps_on_cuPointerGetAttributes(unsigned int count, CUpointer_attribute *which,
                                       void **values, CUdeviceptr pointer) {
    if (needs_memory(pointer))
        gps_merge_back_all();
    const CUresult result = gps_real.cuPointerGetAttributes(count, which, values, pointer);
    for (unsigned int i = 0; result == CUDA_SUCCESS && i < count; i++)
        set_as_allocation(which[i], values[i], pointer);
    return result;
}
