/*
 * written.h - the memory that each WRITE row of hooks.def writes and reads, as gate/write.h has it.
 */
#pragma once

#include "calls/events.h"
#include "calls/graphs.h"
#include "calls/launches.h"
#include "driver.h"
#include "launch_words.h"

#define ASYNC(write)   gps_async_of(write)
#define LASTING(write) gps_lasting_of(write)
/* For a graph that is ready: forgets its noted uses. */
#define CHANGED(exec, write) (gps_graph_forget((uintptr_t)(exec)), (write))

static inline struct gps_write gps_async_of(struct gps_write write) {
    write.ordered = true;
    return write;
}

/* The call copies nothing yet, also where its source is host memory. */
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
    write.reads = size;
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
    write.reads = size;
    return write;
}

/* One side of a box, and the box. `rows`: how many a layer has; 0: only those that are copied. */
struct gps_side {
    CUmemorytype type;
    CUdeviceptr base;
    size_t x, y, z, pitch, rows;
};
struct gps_box {
    size_t width, height, depth;
};

/* The bytes from the first one to the last one of the last row. */
static inline size_t gps_span_of(struct gps_box box, size_t row, size_t layer) {
    return box.width && box.height && box.depth
               ? (box.depth - 1) * layer + (box.height - 1) * row + box.width
               : 0;
}

/* The same of the side, and its first byte; 0 each where it is no device memory. */
static inline size_t gps_touched_of(struct gps_side side, struct gps_box box, uint64_t *first) {
    const size_t row = side.pitch ? side.pitch : box.width;
    const size_t layer = row * (side.rows ? side.rows : box.height);
    const bool device = side.type == CU_MEMORYTYPE_DEVICE || side.type == CU_MEMORYTYPE_UNIFIED;
    const size_t size = device ? gps_span_of(box, row, layer) : 0;
    *first = size ? side.base + side.z * layer + side.y * row + side.x : 0;
    return size;
}

static inline struct gps_write gps_rows_of(CUdeviceptr to, size_t pitch, size_t width,
                                           size_t height, CUstream stream) {
    const struct gps_box box = {width, height, 1};
    struct gps_write write = gps_fill_of(to, gps_span_of(box, pitch, 0), 1, stream);
    write.gaps = true;
    return write;
}

static inline struct gps_write gps_box_of(struct gps_side to, struct gps_side from,
                                          struct gps_box box, CUstream stream) {
    struct gps_write write = gps_fill_of(0, 0, 1, stream);
    write.gaps = true;
    write.size = gps_touched_of(to, box, &write.to);
    write.reads = gps_touched_of(from, box, &write.source);
    if (write.size && from.type == CU_MEMORYTYPE_HOST)
        write.kind = GPS_WRITE_UPLOAD;
    return write;
}

/* A side of a copy: the structures differ, but their members have the same names. */
#define GPS_SIDE(end, z, rows)                                                                     \
    ((struct gps_side){copy->end##MemoryType, copy->end##Device, copy->end##XInBytes,              \
                       copy->end##Y, z, copy->end##Pitch, rows})
#define GPS_BOX_OF(name, type, depth, to, from)                                                    \
    static inline struct gps_write name(const type *copy, CUstream stream) {                       \
        return copy                                                                                \
                   ? gps_box_of(to, from,                                                          \
                                (struct gps_box){copy->WidthInBytes, copy->Height, depth}, stream) \
                   : gps_fill_of(0, 0, 1, stream);                                                 \
    }
#define GPS_SIDE_3D(end) GPS_SIDE(end, copy->end##Z, copy->end##Height)
GPS_BOX_OF(gps_2d_of, CUDA_MEMCPY2D, 1, GPS_SIDE(dst, 0, 0), GPS_SIDE(src, 0, 0))
GPS_BOX_OF(gps_3d_of, CUDA_MEMCPY3D, copy->Depth, GPS_SIDE_3D(dst), GPS_SIDE_3D(src))
GPS_BOX_OF(gps_3d_peer_of, CUDA_MEMCPY3D_PEER, copy->Depth, GPS_SIDE_3D(dst), GPS_SIDE_3D(src))

static inline void gps_batch_range(struct gps_write *one, uint64_t n) {
    one->to = ((const CUdeviceptr *)one->list)[n];
    one->source = one->sources ? ((const CUdeviceptr *)one->sources)[n] : 0;
    one->size = one->sizes[n];
    one->reads = one->size;
}

/* The copies run in no order, from memory of any kind. */
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

/* The same for a side of linear memory, whose lengths are in elements. */
static inline size_t gps_operand_of(const CUmemcpy3DOperand *side, CUextent3D extent,
                                    size_t element, uint64_t *first) {
    const struct gps_box box = {extent.width * element, extent.height, extent.depth};
    return gps_touched_of((struct gps_side){.type = side->type == CU_MEMCPY_OPERAND_TYPE_POINTER
                                                        ? CU_MEMORYTYPE_UNIFIED
                                                        : CU_MEMORYTYPE_ARRAY,
                                            .base = side->op.ptr.ptr,
                                            .pitch = side->op.ptr.rowLength * element,
                                            .rows = side->op.ptr.layerHeight},
                          box, first);
}

/* An element is a byte, or one of the array on the other side, which has 1 to 16: 16 times as much
 * may be written, while the extent is surely read. */
static inline void gps_3d_batch_range(struct gps_write *one, uint64_t n) {
    const CUDA_MEMCPY3D_BATCH_OP *box = (const CUDA_MEMCPY3D_BATCH_OP *)one->list + n;
    one->rough = box->src.type == CU_MEMCPY_OPERAND_TYPE_ARRAY;
    one->size = gps_operand_of(&box->dst, box->extent, one->rough ? 16 : 1, &one->to);
    one->reads = gps_operand_of(&box->src, box->extent, 1, &one->source);
}

static inline struct gps_write gps_3d_batch_of(const CUDA_MEMCPY3D_BATCH_OP *boxes, size_t count,
                                               CUstream stream) {
    return (struct gps_write){.kind = GPS_WRITE_OTHER,
                              .stream = (uintptr_t)stream,
                              .range = gps_3d_batch_range,
                              .list = count ? boxes : NULL,
                              .count = count};
}

/* Each part writes its bytes, and their number. The driver refuses a call for too many bytes. */
static inline void gps_decompression_range(struct gps_write *one, uint64_t n) {
    const CUmemDecompressParams *part = (const CUmemDecompressParams *)one->list + n / 2;
    one->rough = true;
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

/* --- nodes of graphs, and operations on words: the device writes, or looks, when it likes --- */

static inline struct gps_write gps_copy_node_of(const CUDA_MEMCPY3D *copy) {
    return LASTING(gps_3d_of(copy, CU_STREAM_LEGACY));
}

static inline struct gps_write gps_fill_node_of(const CUDA_MEMSET_NODE_PARAMS *fill) {
    return LASTING(fill ? gps_rows_of(fill->dst, fill->pitch, fill->width * fill->elementSize,
                                      fill->height, CU_STREAM_LEGACY)
                        : gps_fill_of(0, 0, 1, CU_STREAM_LEGACY));
}

/* A word that a stream waits for has another writer: a swap would unmap it under that. */
static inline struct gps_write gps_word_of(CUdeviceptr word, size_t size, CUstream stream) {
    return LASTING(gps_fill_of(word, size, 1, stream));
}

/* Programs round a dma-buf's range up to whole pages. */
static inline struct gps_write gps_range_of(CUdeviceptr pointer, size_t size) {
    struct gps_write write = LASTING(gps_fill_of(pointer, size, 1, CU_STREAM_LEGACY));
    write.rough = true;
    return write;
}

/* An operation that CUDA 13.1 added, and older headers lack: the word has 4 or 8 bytes. */
enum { GPS_ATOMIC_REDUCTION = 8 };
struct gps_atomic_reduction {
    CUstreamBatchMemOpType operation;
    unsigned flags, what, type;
    CUdeviceptr address;
};
_Static_assert(sizeof(struct gps_atomic_reduction) <= sizeof(CUstreamBatchMemOpParams), "is one");

static inline void gps_word_range(struct gps_write *one, uint64_t n) {
    const CUstreamBatchMemOpParams *operation = (const CUstreamBatchMemOpParams *)one->list + n;
    const bool is_long = operation->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
                         operation->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
    const bool is_word = operation->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
                         operation->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32;
    one->rough = (unsigned)operation->operation == GPS_ATOMIC_REDUCTION;
    one->to = one->rough           ? ((const struct gps_atomic_reduction *)operation)->address
              : is_long || is_word ? operation->writeValue.address
                                   : 0;
    one->size = is_long || one->rough ? 8 : is_word ? 4 : 0;
}

static inline struct gps_write gps_words_of(const CUstreamBatchMemOpParams *operations,
                                            size_t count, CUstream stream) {
    return LASTING(((struct gps_write){.stream = (uintptr_t)stream,
                                       .range = gps_word_range,
                                       .list = count ? operations : NULL,
                                       .count = count}));
}

static inline struct gps_write gps_words_node_of(const CUDA_BATCH_MEM_OP_NODE_PARAMS *node) {
    return gps_words_of(node ? node->paramArray : NULL, node ? node->count : 0, CU_STREAM_LEGACY);
}

static inline struct gps_write gps_node_of(const CUgraphNodeParams *node) {
    if (node && node->type == CU_GRAPH_NODE_TYPE_MEMCPY)
        return gps_copy_node_of(&node->memcpy.copyParams);
    if (node && node->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
        return gps_words_of(node->memOp.paramArray, node->memOp.count, CU_STREAM_LEGACY);
    if (node && node->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
        gps_event_recorded((uintptr_t)node->eventRecord.event); /* it will be */
    if (node && node->type == CU_GRAPH_NODE_TYPE_KERNEL)
        gps_launch_note(&GPS_LAUNCH_OF(&node->kernel));
    if (!node || node->type != CU_GRAPH_NODE_TYPE_MEMSET)
        return gps_fill_node_of(NULL);
    const CUDA_MEMSET_NODE_PARAMS fill = {.dst = node->memset.dst,
                                          .pitch = node->memset.pitch,
                                          .elementSize = node->memset.elementSize,
                                          .width = node->memset.width,
                                          .height = node->memset.height};
    return gps_fill_node_of(&fill);
}
