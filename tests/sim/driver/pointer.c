/* What the driver tells of a pointer: ranges and attributes. */
#include "block.h"
#include "context.h"
#include "device.h"
#include "host.h"
#include "mapping.h"
#include "state.h"
#include "stream.h"

/* A pointer as attributes see it, whatever kind of memory it leads to. */
struct seen {
    uint64_t base, size, mapping, mapping_size, serial;
    CUcontext context;
    CUdevice device;
    unsigned handle_types, access; /* of VMM memory; access: the current device's */
    struct pool *own_pool;
    bool on_host, managed, pool, imported, mapped, rdma, sync, known;
    bool external; /* a buffer of external memory */
    bool apart;    /* it is of a card whose memory the current context may not use */
};

/* As cudaMalloc gives it, in the process that it gave it to. */
static bool is_plain(const struct seen *seen) {
    return !seen->on_host && !seen->pool && !seen->imported && !seen->external && !seen->mapped;
}

/* VMM memory has no context, and may be closed to the device that asks. */
static void look_at_mapping(struct seen *seen, const struct block *block) {
    CUcontext current = context_top();
    seen->device = device_of_card(block->card);
    if (seen->device < 0 && current)
        seen->device = device_of_card(current->card); /* the memory's is not visible */
    seen->handle_types = mapping_handle_types(block);
    seen->access = mapping_access(block, current ? current->card : block->card);
    seen->mapped = true;
    seen->rdma = mapping_rdma(block);
    mapping_reservation(seen->base, &seen->base, &seen->size);
}

static struct seen look(uint64_t pointer) {
    struct span span;
    struct seen seen = {.known = false};
    STATE_LOCKED();
    const struct host_range *range = host_find(pointer);
    const CUcontext current = context_top();
    if (block_find(pointer, &span)) {
        struct block *block = span.block;
        seen = (struct seen){.base = span.base,
                             .size = span.size,
                             .mapping = block->address,
                             .mapping_size = block->size,
                             .serial = block->serial,
                             .context = block->context,
                             .access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
                             .pool = block->kind == BLOCK_POOL || block->kind == BLOCK_POOL_IMPORT,
                             .own_pool = block->pool,
                             .imported = block->kind == BLOCK_IMPORT,
                             .external = block->external,
                             .sync = block->sync,
                             .apart = current && !context_reaches(current, block),
                             .known = true};
        if (block->mapping)
            look_at_mapping(&seen, block);
        else
            seen.device = block->context->device;
        seen.rdma |= is_plain(&seen);
    } else if (range) {
        seen = (struct seen){.base = range->base,
                             .size = range->size,
                             .mapping = range->base,
                             .mapping_size = range->size,
                             .serial = range->serial,
                             .context = range->context,
                             .device = range->context->device,
                             .access = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
                             .on_host = true,
                             .managed = range->managed,
                             .known = true};
    }
    return seen;
}

CUresult CUDAAPI cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr pointer) {
    CURRENT(context);
    if (!base && !size)
        return CUDA_SUCCESS;
    struct seen seen = look(pointer);
    REFUSE(!seen.known || seen.apart, CUDA_ERROR_NOT_FOUND);
    /* Of a reservation, the block alone. */
    if (base)
        *base = seen.mapped ? seen.mapping : seen.base;
    if (size)
        *size = seen.mapped ? seen.mapping_size : seen.size;
    return CUDA_SUCCESS;
}

static size_t width_of(CUpointer_attribute attribute) {
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        return sizeof(int);
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
        return sizeof(CUDA_POINTER_ATTRIBUTE_P2P_TOKENS);
    default:
        return sizeof(uint64_t);
    }
}

/* The value as a number; all attributes of the simulator's are numbers or addresses. */
static bool value_of(const struct seen *seen, uint64_t pointer, CUpointer_attribute attribute,
                     uint64_t *value) {
    *value = 0;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *value = (uint64_t)(uintptr_t)seen->context;
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *value = seen->on_host && !seen->managed ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *value = pointer;
        return seen->on_host;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *value = pointer;
        return !seen->apart;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        *value = seen->serial;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *value = seen->managed;
        break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *value = seen->sync;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *value = (uint64_t)seen->device;
        break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *value = is_plain(seen);
        break;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        *value = seen->rdma;
        break;
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        *value = is_plain(seen);
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *value = seen->base;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *value = seen->size;
        break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *value = 1;
        break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *value = seen->access;
        break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *value = seen->handle_types;
        break;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *value = seen->mapping_size;
        break;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *value = seen->mapping;
        break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: {
        CUmemoryPool pool = NULL;
        if (seen->own_pool)
            pool = (CUmemoryPool)(void *)seen->own_pool;
        else if (seen->pool)
            cuDeviceGetDefaultMemPool(&pool, seen->device);
        *value = (uint64_t)(uintptr_t)pool;
        break;
    }
    default:
        return attribute > 0 && attribute <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE;
    }
    return true;
}

/* For tokens other hardware will ask; so what the host orders has ended when it returns. */
static void note_tokens(CUpointer_attribute attribute, uint64_t pointer) {
    struct span span;
    if (attribute != CU_POINTER_ATTRIBUTE_P2P_TOKENS)
        return;
    STATE_LOCKED();
    if (block_find(pointer, &span))
        span.block->sync = true;
}

static void store(void *data, uint64_t value, size_t width) {
    /* Little-endian (protocol.h insists): the low bytes come first. */
    unsigned char *out = data;
    for (size_t i = 0; i < width; i++)
        out[i] = i < sizeof value ? (unsigned char)(value >> (8 * i)) : 0;
}

CUresult CUDAAPI cuPointerGetAttribute(void *data, CUpointer_attribute attribute,
                                       CUdeviceptr pointer) {
    uint64_t value;
    TRY(state_check());
    struct seen seen = look(pointer);
    if (!data || !seen.known || !value_of(&seen, pointer, attribute, &value))
        return CUDA_ERROR_INVALID_VALUE;
    store(data, value, width_of(attribute));
    note_tokens(attribute, pointer);
    return CUDA_SUCCESS;
}

/* Never fails for an unknown pointer: what does not apply is zero. */
CUresult CUDAAPI cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes,
                                        void **data, CUdeviceptr pointer) {
    TRY(state_check());
    REFUSE(!attributes || !data, CUDA_ERROR_INVALID_VALUE);
    struct seen seen = look(pointer);
    for (unsigned i = 0; i < count; i++) {
        uint64_t value = 0;
        if (!seen.known || !value_of(&seen, pointer, attributes[i], &value))
            value = attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? (uint64_t)-2 : 0;
        store(data[i], value, width_of(attributes[i]));
        note_tokens(attributes[i], pointer);
    }
    return CUDA_SUCCESS;
}

/* Device memory alone has it. */
CUresult CUDAAPI cuPointerSetAttribute(const void *data, CUpointer_attribute attribute,
                                       CUdeviceptr pointer) {
    struct span span;
    CUresult result = CUDA_SUCCESS;
    TRY(state_check());
    REFUSE(!data || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, CUDA_ERROR_INVALID_VALUE);
    TRY(capture_forbidden());
    STATE_LOCKED();
    if (!block_find(pointer, &span))
        result = CUDA_ERROR_INVALID_VALUE;
    else if (span.block->mapping)
        result = CUDA_ERROR_NOT_SUPPORTED;
    else
        span.block->sync = *(const unsigned *)data;
    return result;
}

/* --- what else can be done with a range --- */

/* Whether device memory is there, from its first byte to its last. A range that ends in the last
 * page of an allocation ends with it. */
static bool is_there(uint64_t address, uint64_t size) {
    struct span span;
    uint64_t done = 0;
    while (done < size && block_find(address + done, &span))
        done = span.block->address + span.block->size - address;
    return size && done >= size;
}

/* A descriptor that nobody reads: another device would. */
static CUresult make_descriptor(int *out) {
    const int fd = memfd_create("dmabuf", MFD_CLOEXEC);
    REFUSE(fd < 0, CUDA_ERROR_OUT_OF_MEMORY);
    *out = fd;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetHandleForAddressRange(void *out, CUdeviceptr pointer, size_t size,
                                               CUmemRangeHandleType type,
                                               unsigned long long flags) {
    TRY(state_asked());
    if (!out || flags || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || pointer % 4096 ||
        size % 4096)
        return CUDA_ERROR_INVALID_VALUE;
    state_lock();
    const bool there = is_there(pointer, size);
    state_unlock();
    return there ? make_descriptor(out) : CUDA_ERROR_INVALID_VALUE;
}

/* --- what the card cannot do --- */

#define DECOMPRESSES(suffix)                                                                       \
    CUresult CUDAAPI cuMemBatchDecompressAsync##suffix(CUmemDecompressParams *parts, size_t count, \
                                                       unsigned int flags, size_t *failed,         \
                                                       CUstream stream) {                          \
        return CUDA_ERROR_NOT_SUPPORTED;                                                           \
    }
DECOMPRESSES()
DECOMPRESSES(_ptsz)

/* Prefetches and advice are for managed memory. */
static CUresult check_managed(uint64_t address, uint64_t size) {
    CURRENT(context);
    STATE_LOCKED();
    const struct host_range *range = host_find(address);
    const bool managed =
        range && range->managed && size && size <= range->base + range->size - address;
    return managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CALL(cuMemAdvise, (CUdeviceptr pointer, size_t size, CUmem_advise advice, CUdevice device),
     check_managed(pointer, size))
CALL(cuMemAdvise_v2,
     (CUdeviceptr pointer, size_t size, CUmem_advise advice, CUmemLocation location),
     check_managed(pointer, size))

#define PREFETCH(suffix)                                                                           \
    CUresult CUDAAPI cuMemPrefetchAsync##suffix(CUdeviceptr pointer, size_t size, CUdevice device, \
                                                CUstream stream) {                                 \
        return check_managed(pointer, size);                                                       \
    }                                                                                              \
    CUresult CUDAAPI cuMemPrefetchAsync_v2##suffix(CUdeviceptr pointer, size_t size,               \
                                                   CUmemLocation location, unsigned int flags,     \
                                                   CUstream stream) {                              \
        return check_managed(pointer, size);                                                       \
    }
PREFETCH()
PREFETCH(_ptsz)
