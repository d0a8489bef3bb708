/* The cuMemcpy* and cuMemset* calls of rows that lie a pitch apart: each row is a transfer. */
#include "context.h"
#include "transfer.h"

/* One side of a copy of rows: its first byte. */
struct rows {
    struct end first;
    size_t pitch;
};

static bool side_of(CUmemorytype type, size_t x, size_t y, const void *host, CUdeviceptr device,
                    size_t pitch, struct rows *rows) {
    const uint64_t base = type == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)host : device;
    const enum side sides[] = {[CU_MEMORYTYPE_HOST] = SIDE_ANY,
                               [CU_MEMORYTYPE_DEVICE] = SIDE_DEVICE,
                               [CU_MEMORYTYPE_UNIFIED] = SIDE_ANY};
    if (type < CU_MEMORYTYPE_HOST || type > CU_MEMORYTYPE_UNIFIED || type == CU_MEMORYTYPE_ARRAY)
        return false;
    *rows = (struct rows){{base + y * pitch + x, sides[type]}, pitch};
    return true;
}

static struct end row(const struct rows *rows, size_t number) {
    return (struct end){rows->first.address + number * rows->pitch, rows->first.side};
}

static CUresult check(const struct rows *to, const struct rows *from, size_t width, size_t height,
                      struct manner manner) {
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < height && !result; i++)
        result = transfer_check(row(to, i), row(from, i), width);
    return result;
}

/* All rows may be copied, or none is. */
static CUresult copy(const struct rows *to, const struct rows *from, size_t width, size_t height,
                     struct manner manner) {
    CUresult result = check(to, from, width, height, manner);
    for (size_t i = 0; i < height && !result; i++)
        result = transfer_copy(row(to, i), row(from, i), width, manner);
    return result;
}

/* One end of a plan, from a row on. The plans differ, but for the names of what they have. */
#define SIDE(plan, end, row, width, to)                                                            \
    (side_of((plan)->end##MemoryType, (plan)->end##XInBytes, row, (plan)->end##Host,               \
             (plan)->end##Device, (plan)->end##Pitch ? (plan)->end##Pitch : (width), to) &&        \
     (to)->pitch >= (width))

static CUresult copy_2d(const CUDA_MEMCPY2D_v2 *plan, struct manner manner) {
    struct rows to, from;
    CURRENT(context);
    REFUSE(!plan, CUDA_ERROR_INVALID_VALUE);
    const size_t width = plan->WidthInBytes, height = plan->Height;
    if (!SIDE(plan, dst, plan->dstY, width, &to) || !SIDE(plan, src, plan->srcY, width, &from))
        return CUDA_ERROR_INVALID_VALUE;
    if (to.pitch == width && from.pitch == width)
        return transfer_copy(to.first, from.first, width * height, manner);
    return copy(&to, &from, width, height, manner);
}

CALL(cuMemcpy2D_v2, (const CUDA_MEMCPY2D_v2 *plan), copy_2d(plan, WAITING))
CALL(cuMemcpy2D_v2_ptds, (const CUDA_MEMCPY2D_v2 *plan), copy_2d(plan, WAITING_PTDS))
CALL(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D_v2 *plan), copy_2d(plan, WAITING))
CALL(cuMemcpy2DUnaligned_v2_ptds, (const CUDA_MEMCPY2D_v2 *plan), copy_2d(plan, WAITING_PTDS))
CALL(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D_v2 *plan, CUstream stream), copy_2d(plan, QUEUED))
CALL(cuMemcpy2DAsync_v2_ptsz, (const CUDA_MEMCPY2D_v2 *plan, CUstream stream),
     copy_2d(plan, QUEUED_PTSZ))

/* --- boxes of linear memory --- */

/* All layers may be copied, or none is: the last byte lies behind all others. */
static CUresult copy_3d(const CUDA_MEMCPY3D *plan, struct manner manner) {
    struct rows to, from;
    CUresult result = CUDA_SUCCESS;
    CURRENT(context);
    REFUSE(!plan, CUDA_ERROR_INVALID_VALUE);
    const size_t width = plan->WidthInBytes, height = plan->Height;
    const size_t to_rows = plan->dstHeight ? plan->dstHeight : height;
    const size_t from_rows = plan->srcHeight ? plan->srcHeight : height;
    for (int copies = 0; copies < 2; copies++)
        for (size_t z = 0; z < plan->Depth && width && height && !result; z++) {
            if (!SIDE(plan, dst, (plan->dstZ + z) * to_rows + plan->dstY, width, &to) ||
                !SIDE(plan, src, (plan->srcZ + z) * from_rows + plan->srcY, width, &from))
                return CUDA_ERROR_INVALID_VALUE;
            result = (copies ? copy : check)(&to, &from, width, height, manner);
        }
    return result;
}

static CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER *plan, struct manner manner) {
    if (!plan)
        return copy_3d(NULL, manner);
    const CUDA_MEMCPY3D box = {.srcXInBytes = plan->srcXInBytes,
                               .srcY = plan->srcY,
                               .srcZ = plan->srcZ,
                               .srcMemoryType = plan->srcMemoryType,
                               .srcHost = plan->srcHost,
                               .srcDevice = plan->srcDevice,
                               .srcPitch = plan->srcPitch,
                               .srcHeight = plan->srcHeight,
                               .dstXInBytes = plan->dstXInBytes,
                               .dstY = plan->dstY,
                               .dstZ = plan->dstZ,
                               .dstMemoryType = plan->dstMemoryType,
                               .dstHost = plan->dstHost,
                               .dstDevice = plan->dstDevice,
                               .dstPitch = plan->dstPitch,
                               .dstHeight = plan->dstHeight,
                               .WidthInBytes = plan->WidthInBytes,
                               .Height = plan->Height,
                               .Depth = plan->Depth};
    return copy_3d(&box, manner);
}

#define BOXES(base, v, type, make)                                                                 \
    CUresult CUDAAPI base##v(const type *plan) {                                                   \
        return make(plan, WAITING);                                                                \
    }                                                                                              \
    CUresult CUDAAPI base##v##_ptds(const type *plan) {                                            \
        return make(plan, WAITING_PTDS);                                                           \
    }                                                                                              \
    CUresult CUDAAPI base##Async##v(const type *plan, CUstream stream) {                           \
        return make(plan, QUEUED);                                                                 \
    }                                                                                              \
    CUresult CUDAAPI base##Async##v##_ptsz(const type *plan, CUstream stream) {                    \
        return make(plan, QUEUED_PTSZ);                                                            \
    }
BOXES(cuMemcpy3D, _v2, CUDA_MEMCPY3D, copy_3d)
BOXES(cuMemcpy3DPeer, , CUDA_MEMCPY3D_PEER, copy_3d_peer)

/* --- many of them at once --- */

static bool box_side(const CUmemcpy3DOperand *operand, const CUextent3D *extent, size_t layer,
                     struct rows *rows) {
    const size_t pitch = operand->op.ptr.rowLength ? operand->op.ptr.rowLength : extent->width;
    const size_t height =
        operand->op.ptr.layerHeight ? operand->op.ptr.layerHeight : extent->height;
    *rows = (struct rows){{operand->op.ptr.ptr + layer * pitch * height, SIDE_ANY}, pitch};
    return operand->type == CU_MEMCPY_OPERAND_TYPE_POINTER;
}

static CUresult copy_boxes(size_t count, const CUDA_MEMCPY3D_BATCH_OP *boxes,
                           struct manner manner) {
    CUcontext context;
    struct rows to, from;
    CUresult result = context_current(&context);
    if (!result && (!count || !boxes))
        result = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && !result; i++) {
        const CUextent3D *extent = &boxes[i].extent;
        for (size_t layer = 0; layer < extent->depth && !result; layer++)
            result = box_side(&boxes[i].dst, extent, layer, &to) &&
                             box_side(&boxes[i].src, extent, layer, &from)
                         ? copy(&to, &from, extent->width, extent->height, manner)
                         : CUDA_ERROR_INVALID_VALUE;
    }
    return result;
}

/* The legacy stream is refused. */
CUresult CUDAAPI cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP *boxes,
                                         unsigned long long flags, CUstream stream) {
    return !stream || stream == CU_STREAM_LEGACY ? CUDA_ERROR_INVALID_VALUE
                                                 : copy_boxes(count, boxes, QUEUED);
}

CALL(cuMemcpy3DBatchAsync_v2_ptsz,
     (size_t count, CUDA_MEMCPY3D_BATCH_OP *boxes, unsigned long long flags, CUstream stream),
     copy_boxes(count, boxes, QUEUED_PTSZ))
CALL(cuMemcpy3DWithAttributesAsync,
     (CUDA_MEMCPY3D_BATCH_OP * box, unsigned long long flags, CUstream stream),
     copy_boxes(1, box, QUEUED))
CALL(cuMemcpy3DWithAttributesAsync_ptsz,
     (CUDA_MEMCPY3D_BATCH_OP * box, unsigned long long flags, CUstream stream),
     copy_boxes(1, box, QUEUED_PTSZ))

/* --- memsets; `count` elements of `width` bytes a row --- */

/* All rows may be filled, or none is: the next allocation may begin within one. */
static CUresult fill(uint64_t to, size_t pitch, uint32_t value, unsigned width, size_t count,
                     size_t height, struct manner manner) {
    CUresult result = CUDA_SUCCESS;
    REFUSE(height > 1 && pitch < count * width, CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < height && !result; i++)
        result = transfer_check_fill(to + i * pitch, count, width);
    for (size_t i = 0; i < height && !result; i++)
        result = transfer_fill(to + i * pitch, count, value, width, manner);
    return result;
}

#define FILLS(base, type, width)                                                                   \
    CUresult CUDAAPI base##_v2(CUdeviceptr to, size_t pitch, type value, size_t count,             \
                               size_t height) {                                                    \
        return fill(to, pitch, value, width, count, height, WAITING);                              \
    }                                                                                              \
    CUresult CUDAAPI base##_v2_ptds(CUdeviceptr to, size_t pitch, type value, size_t count,        \
                                    size_t height) {                                               \
        return fill(to, pitch, value, width, count, height, WAITING_PTDS);                         \
    }                                                                                              \
    CUresult CUDAAPI base##Async(CUdeviceptr to, size_t pitch, type value, size_t count,           \
                                 size_t height, CUstream stream) {                                 \
        return fill(to, pitch, value, width, count, height, QUEUED);                               \
    }                                                                                              \
    CUresult CUDAAPI base##Async_ptsz(CUdeviceptr to, size_t pitch, type value, size_t count,      \
                                      size_t height, CUstream stream) {                            \
        return fill(to, pitch, value, width, count, height, QUEUED_PTSZ);                          \
    }                                                                                              \
    CUresult CUDAAPI base(CUdeviceptr_v1 to, unsigned int pitch, type value, unsigned int count,   \
                          unsigned int height) {                                                   \
        return fill(to, pitch, value, width, count, height, WAITING);                              \
    }

FILLS(cuMemsetD2D8, unsigned char, 1)
FILLS(cuMemsetD2D16, unsigned short, 2)
FILLS(cuMemsetD2D32, unsigned int, 4)
