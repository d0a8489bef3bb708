/*
 * written.h - what each WRITE row of hooks.def writes and reads, in the words of writes/write.h.
 *
 * The null stream means the legacy default stream, or the thread's own in a function whose name
 * ends in _ptds or _ptsz: the rows say which.
 */
#pragma once

#include "calls/events.h"
#include "calls/launches.h"
#include "driver.h"

#define LEGACY                      CU_STREAM_LEGACY
#define PER_THREAD                  CU_STREAM_PER_THREAD
#define EXPLICIT(stream)            ((stream) ? (stream) : LEGACY)
#define EXPLICIT_PER_THREAD(stream) ((stream) ? (stream) : PER_THREAD)
#define ASYNC(write)                gps_async_of(write)
#define LASTING(write)              gps_lasting_of(write)

static inline struct gps_write gps_async_of(struct gps_write write) {
    write.ordered = true;
    return write;
}

/* It copies nothing yet, also where its source is host memory. */
static inline struct gps_write gps_lasting_of(struct gps_write write) {
    write.kind = GPS_WRITE_OTHER;
    write.lasting = true;
    return write;
}

static inline struct gps_write gps_upload_of(CUdeviceptr to, const void *from, size_t size,
                                             CUstream stream) {
    return (struct gps_write){.kind = GPS_WRITE_UPLOAD,
                              .to = to,
                              .from = from,
                              .size = size,
                              .stream = (uintptr_t)stream};
}

static inline struct gps_write gps_copy_of(CUdeviceptr to, CUdeviceptr from, size_t size,
                                           CUstream stream) {
    struct gps_write write = gps_upload_of(to, (const void *)from, size, stream);
    write.kind = GPS_WRITE_ANY;
    write.source = size ? from : 0;
    return write;
}

static inline struct gps_write gps_fill_of(CUdeviceptr to, size_t count, size_t width,
                                           CUstream stream) {
    struct gps_write write = gps_upload_of(to, NULL, count * width, stream);
    write.kind = GPS_WRITE_OTHER;
    return write;
}

static inline struct gps_write gps_move_of(CUdeviceptr to, CUdeviceptr from, size_t size,
                                           CUstream stream) {
    struct gps_write write = gps_fill_of(to, size, 1, stream);
    write.source = size ? from : 0;
    return write;
}

/* Rows that touch are one range. */
static inline struct gps_write gps_rows_of(CUdeviceptr to, size_t pitch, size_t width,
                                           size_t height, CUstream stream) {
    struct gps_write write = gps_fill_of(to,
                                         pitch == width ? width * height
                                         : height       ? width
                                                        : 0,
                                         1, stream);
    write.pitch = pitch;
    write.rows = pitch == width || !width ? 1 : height;
    return write;
}

static inline bool gps_is_device(CUmemorytype type) {
    return type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED;
}

/* From the first byte to the last one; one layer is its rows. `layers` and `first` say which layers
 * are written, and `rows_apart` how many rows each has (0: only those that are written). */
#define GPS_BOX_OF(name, type, layers, first, rows_apart)                                          \
    static inline struct gps_write name(const type *copy, CUstream stream) {                       \
        const bool any = copy && copy->WidthInBytes && copy->Height && (layers);                   \
        const uint64_t source = any && gps_is_device(copy->srcMemoryType) ? copy->srcDevice : 0;   \
        if (!copy || !gps_is_device(copy->dstMemoryType) || !(layers))                             \
            return (struct gps_write){                                                             \
                .kind = GPS_WRITE_OTHER, .source = source, .stream = (uintptr_t)stream};           \
        const size_t pitch = copy->dstPitch ? copy->dstPitch : copy->WidthInBytes;                 \
        const size_t layer = pitch * ((rows_apart) ? (rows_apart) : copy->Height);                 \
        const CUdeviceptr to =                                                                     \
            copy->dstDevice + (first)*layer + copy->dstY * pitch + copy->dstXInBytes;              \
        struct gps_write write = gps_rows_of(to, pitch, copy->WidthInBytes, copy->Height, stream); \
        write.source = source;                                                                     \
        if (any && (layers) > 1) {                                                                 \
            write.size = ((layers)-1) * layer + (copy->Height - 1) * pitch + copy->WidthInBytes;   \
            write.rows = 1;                                                                        \
        }                                                                                          \
        if (copy->srcMemoryType == CU_MEMORYTYPE_HOST)                                             \
            write.kind = GPS_WRITE_UPLOAD;                                                         \
        return write;                                                                              \
    }
GPS_BOX_OF(gps_2d_of, CUDA_MEMCPY2D, 1, 0, 0)
GPS_BOX_OF(gps_3d_of, CUDA_MEMCPY3D, copy->Depth, copy->dstZ, copy->dstHeight)
GPS_BOX_OF(gps_3d_peer_of, CUDA_MEMCPY3D_PEER, copy->Depth, copy->dstZ, copy->dstHeight)

static inline void gps_batch_range(struct gps_write *one, uint64_t n) {
    one->to = ((const CUdeviceptr *)one->list)[n];
    one->source = one->sources ? ((const CUdeviceptr *)one->sources)[n] : 0;
    one->size = one->sizes[n];
}

/* In no order, and from anywhere. */
static inline struct gps_write gps_batch_of(const CUdeviceptr *to, const CUdeviceptr *from,
                                            const size_t *sizes, size_t count, CUstream stream) {
    return (struct gps_write){.kind = GPS_WRITE_OTHER,
                              .stream = (uintptr_t)stream,
                              .range = gps_batch_range,
                              .list = to && sizes && count ? to : NULL,
                              .sources = from,
                              .sizes = sizes,
                              .count = count};
}

/* From the first byte to the last one. Lengths are in elements: bytes, or those of the array that
 * is copied, which have 16 bytes at most. */
static inline void gps_3d_batch_range(struct gps_write *one, uint64_t n) {
    const CUDA_MEMCPY3D_BATCH_OP *box = (const CUDA_MEMCPY3D_BATCH_OP *)one->list + n;
    const CUextent3D extent = box->extent;
    one->rough = box->src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY;
    const uint64_t row = box->dst.op.ptr.rowLength ? box->dst.op.ptr.rowLength : extent.width;
    const uint64_t layer =
        row * (box->dst.op.ptr.layerHeight ? box->dst.op.ptr.layerHeight : extent.height);
    const uint64_t element = one->rough ? 16 : 1;
    const bool linear = box->dst.type == CU_MEMCPY_OPERAND_TYPE_POINTER;
    const bool any = linear && extent.width && extent.height && extent.depth;
    one->to = any ? box->dst.op.ptr.ptr : 0;
    one->source = box->src.type == CU_MEMCPY_OPERAND_TYPE_POINTER ? box->src.op.ptr.ptr : 0;
    one->size =
        any ? element * ((extent.depth - 1) * layer + (extent.height - 1) * row + extent.width) : 0;
}

static inline struct gps_write gps_3d_batch_of(const CUDA_MEMCPY3D_BATCH_OP *boxes, size_t count,
                                               CUstream stream) {
    return (struct gps_write){.kind = GPS_WRITE_OTHER,
                              .stream = (uintptr_t)stream,
                              .range = gps_3d_batch_range,
                              .list = count ? boxes : NULL,
                              .count = count};
}

/* Each writes its bytes, and how many they are. */
static inline void gps_decompression_range(struct gps_write *one, uint64_t n) {
    const CUmemDecompressParams *part = (const CUmemDecompressParams *)one->list + n / 2;
    one->to = n % 2 ? (uintptr_t)part->dstActBytes : (uintptr_t)part->dst;
    one->size = n % 2 ? sizeof(*part->dstActBytes) : part->dstNumBytes;
}

static inline struct gps_write gps_decompressions_of(const CUmemDecompressParams *parts,
                                                     size_t count, CUstream stream) {
    return (struct gps_write){.kind = GPS_WRITE_OTHER,
                              .stream = (uintptr_t)stream,
                              .range = gps_decompression_range,
                              .list = count ? parts : NULL,
                              .count = 2 * count};
}

/* --- nodes of graphs, and operations on words: the device writes there, or looks, when it likes
 * ---
 */

static inline struct gps_write gps_copy_node_of(const CUDA_MEMCPY3D *copy) {
    return LASTING(gps_3d_of(copy, LEGACY));
}

static inline struct gps_write gps_fill_node_of(const CUDA_MEMSET_NODE_PARAMS *fill) {
    return LASTING(fill ? gps_rows_of(fill->dst, fill->pitch, fill->width * fill->elementSize,
                                      fill->height, LEGACY)
                        : gps_fill_of(0, 0, 1, LEGACY));
}

/* A word that is waited for is written by something else: a swap would take it from under that. */
static inline struct gps_write gps_word_of(CUdeviceptr word, size_t size, CUstream stream) {
    return LASTING(gps_fill_of(word, size, 1, stream));
}

/* Who asks for a dma-buf rounds up to whole pages. */
static inline struct gps_write gps_range_of(CUdeviceptr pointer, size_t size) {
    struct gps_write write = LASTING(gps_fill_of(pointer, size, 1, LEGACY));
    write.rough = true;
    return write;
}

static inline void gps_word_range(struct gps_write *one, uint64_t n) {
    const CUstreamBatchMemOpParams *operation = (const CUstreamBatchMemOpParams *)one->list + n;
    const bool is_long = operation->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
                         operation->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
    const bool is_word = operation->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
                         operation->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32;
    one->to = is_long || is_word ? operation->writeValue.address : 0;
    one->size = is_long ? 8 : is_word ? 4 : 0;
}

static inline struct gps_write gps_words_of(const CUstreamBatchMemOpParams *operations,
                                            size_t count, CUstream stream) {
    return LASTING(((struct gps_write){.stream = (uintptr_t)stream,
                                       .range = gps_word_range,
                                       .list = count ? operations : NULL,
                                       .count = count}));
}

static inline struct gps_write gps_words_node_of(const CUDA_BATCH_MEM_OP_NODE_PARAMS *node) {
    return gps_words_of(node ? node->paramArray : NULL, node ? node->count : 0, LEGACY);
}

static inline struct gps_write gps_node_of(const CUgraphNodeParams *node) {
    if (node && node->type == CU_GRAPH_NODE_TYPE_MEMCPY)
        return gps_copy_node_of(&node->memcpy.copyParams);
    if (node && node->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
        return gps_words_of(node->memOp.paramArray, node->memOp.count, LEGACY);
    if (node && node->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
        gps_event_recorded((uintptr_t)node->eventRecord.event); /* it will be */
    if (!node || node->type != CU_GRAPH_NODE_TYPE_MEMSET)
        return gps_fill_node_of(NULL);
    const CUDA_MEMSET_NODE_PARAMS fill = {.dst = node->memset.dst,
                                          .pitch = node->memset.pitch,
                                          .elementSize = node->memset.elementSize,
                                          .width = node->memset.width,
                                          .height = node->memset.height};
    return gps_fill_node_of(&fill);
}
