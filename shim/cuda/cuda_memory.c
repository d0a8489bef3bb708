/* cuda_memory.c - CUDA's allocations and frees, in every version of their ABI, and the program's
 * questions to the driver about memory. */
#include "calls/address.h"
#include "calls/mappings.h"
#include "calls/memory.h"
#include "hooks.h"
#include "written.h"

/* --- allocation --- */

struct linear {
    struct gps_allocation asked;
    void *out;
    CUstream stream; /* of memory of a pool */
};
struct pitched {
    struct gps_allocation asked;
    void *out, *pitch;
    struct gps_rows rows;
    unsigned int element;
};

/* `arguments`: of the driver's call. `note` follows its success, `tell` that of the whole call. The
 * rest initialises the struct gps_allocation. */
#define ALLOCATE(name, kind, type, parameters, arguments, note, tell, ...)                         \
    static int real_##name(struct gps_allocation *asked) {                                         \
        struct kind *const call = (struct kind *)asked;                                            \
        type *const out = call->out;                                                               \
        const CUresult result = gps_real.name arguments;                                           \
        if (result == CUDA_SUCCESS) {                                                              \
            asked->pointer = *out;                                                                 \
            note;                                                                                  \
        }                                                                                          \
        return (int)result;                                                                        \
    }                                                                                              \
    CUresult gps_on_##name parameters {                                                            \
        struct kind call = {.asked.call = real_##name, .out = out, __VA_ARGS__};                   \
        const int code = gps_memory_allocate(&call.asked);                                         \
        if (code == GPS_OK) {                                                                      \
            *out = (type)call.asked.pointer;                                                       \
            tell;                                                                                  \
        }                                                                                          \
        return (CUresult)code;                                                                     \
    }

/* The 32-bit addresses of the first ABI cannot hold an address that a rule chose. */
ALLOCATE(cuMemAlloc, linear, CUdeviceptr_v1, (CUdeviceptr_v1 * out, unsigned int size),
         (out, (unsigned int)asked->size), , , .asked.size = size)
ALLOCATE(cuMemAlloc_v2, linear, CUdeviceptr, (CUdeviceptr * out, size_t size), (out, asked->size), ,
         , .asked.size = size, .asked.shareable = out)

#define ALLOCATE_ASYNC(name, own)                                                                  \
    ALLOCATE(name, linear, CUdeviceptr, (CUdeviceptr * out, size_t size, CUstream stream),         \
             (out, asked->size, call->stream), , , .asked.size = size, .asked.shareable = out,     \
             .asked.pooled = true, .asked.stream = (uintptr_t)(stream ? stream : (own)),           \
             .stream = stream)
ALLOCATE_ASYNC(cuMemAllocAsync, NULL)
ALLOCATE_ASYNC(cuMemAllocAsync_ptsz, CU_STREAM_PER_THREAD)

/* One row tells the pitch. Its free waits for the device. */
static int cuda_pitch_find(struct gps_allocation *asked) {
    CUdeviceptr row;
    size_t pitch;
    const CUresult result = gps_real.cuMemAllocPitch_v2(&row, &pitch, asked->size, 1,
                                                        ((struct pitched *)asked)->element);
    if (result == CUDA_SUCCESS) {
        asked->rows->pitch = pitch;
        gps_real.cuMemFree_v2(row);
    }
    return (int)result;
}

#define ALLOCATE_PITCH(name, type, size_type, share)                                               \
    ALLOCATE(                                                                                      \
        name, pitched, type,                                                                       \
        (type * out, size_type * pitch, size_type width, size_type height, unsigned int element),  \
        (out, call->pitch, (size_type)asked->size, (size_type)call->rows.count, call->element),    \
        call->rows.pitch = *(size_type *)call->pitch, *pitch = (size_type)call.rows.pitch,         \
        .asked.size = width, .asked.rows = &call.rows, .asked.shareable = share, .pitch = pitch,   \
        .rows = {height, 0, cuda_pitch_find}, .element = element)
ALLOCATE_PITCH(cuMemAllocPitch, CUdeviceptr_v1, unsigned int, false)
ALLOCATE_PITCH(cuMemAllocPitch_v2, CUdeviceptr, size_t, out &&pitch)

/* --- free --- */

#define FREE(name, type)                                                                           \
    static int real_##name(uint64_t pointer, void *stream) {                                       \
        (void)stream;                                                                              \
        return (int)gps_real.name((type)pointer);                                                  \
    }                                                                                              \
    CUresult gps_on_##name(type pointer) {                                                         \
        return (CUresult)gps_memory_free(pointer,                                                  \
                                         &(struct gps_release){real_##name, NULL, false});         \
    }
FREE(cuMemFree, CUdeviceptr_v1)
FREE(cuMemFree_v2, CUdeviceptr)

/* cuMemFreeAsync frees memory of cuMemAlloc, too. */
#define FREE_ASYNC(name, own)                                                                      \
    static int real_##name(uint64_t pointer, void *stream) {                                       \
        return (int)gps_real.name(pointer, stream);                                                \
    }                                                                                              \
    CUresult gps_on_##name(CUdeviceptr pointer, CUstream stream) {                                 \
        return (CUresult)gps_memory_free(                                                          \
            pointer, &(struct gps_release){real_##name, stream ? stream : (own), true});           \
    }
FREE_ASYNC(cuMemFreeAsync, NULL)
FREE_ASYNC(cuMemFreeAsync_ptsz, CU_STREAM_PER_THREAD)

/* --- the program's questions about memory --- */

CUresult gps_on_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr pointer) {
    CUdeviceptr begin = 0;
    size_t length = 0;
    pointer = gps_address_for_driver(pointer);
    if (!base && !size)
        return gps_real.cuMemGetAddressRange_v2(base, size, pointer);
    const CUresult result = gps_real.cuMemGetAddressRange_v2(&begin, &length, pointer);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_FOUND)
        return result; /* the answer holds for an allocation, too; only an unmapped block is not
                          found */
    const struct gps_place at = gps_at_base(pointer, begin);
    if (!at.size && result != CUDA_SUCCESS)
        return result;
    if (base)
        *base = at.size ? at.base : begin;
    if (size)
        *size = at.size ? at.size : length;
    return CUDA_SUCCESS;
}

#define OURS (UINT64_C(1) << 48) /* the driver's own ids count from 1 */

static void set_writable(void *value) {
    CUDA_POINTER_ATTRIBUTE_ACCESS_FLAGS *const flags = value;
    if (*flags == CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ)
        *flags = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
}

/* The answer is the allocation's, lasting and writable: blocks come and go, or are read-only. */
static void set_as_pieced(CUpointer_attribute which, void *value, const struct gps_place *at) {
    switch (which) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *(CUdeviceptr *)value = at->base;
        break;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *(size_t *)value = at->extent;
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        *(unsigned long long *)value = OURS + at->serial;
        break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
        *(unsigned *)value = at->synced;
        break;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: /* once it is the program's alone */
        if (at->kind == GPS_PLACE_MERGED)
            *(unsigned *)value = gps_operations_rdma(at->device);
        break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        set_writable(value);
        break;
    default:
        break;
    }
}

/* Hides the POSIX_FD that this library added for tokens. */
static void set_as_made(CUpointer_attribute which, void *value, CUdeviceptr pointer) {
    if (which == CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES && gps_mappings_is_passable_at(pointer))
        *(unsigned long long *)value &=
            ~(unsigned long long)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
}

/* Memory that the program maps itself is one mapping to it, not several. */
static void set_as_parted(CUpointer_attribute which, void *value, const struct gps_place *at) {
    switch (which) {
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)value = at->as.buffer;
        break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(unsigned long long *)value = at->as.types;
        break;
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
        *(bool *)value = at->as.decompressible;
        break;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        *(bool *)value = at->as.rdma;
        break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        if (at->open)
            set_writable(value);
        break;
    default:
        break;
    }
}

static void set_as_allocation(CUpointer_attribute which, void *value, const struct gps_place *at) {
    if (which == CU_POINTER_ATTRIBUTE_CONTEXT)
        *(CUcontext *)value = (CUcontext)at->context;
    else if (which == CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES)
        *(unsigned long long *)value = CU_MEM_HANDLE_TYPE_NONE;
    else if (which == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE)
        *(bool *)value = at->has_handles;
    else if (which == CU_POINTER_ATTRIBUTE_RANGE_SIZE)
        *(size_t *)value = at->size;
    else if (gps_place_is_pieced(at))
        set_as_pieced(which, value, at);
}

static CUresult sync_pieced(const struct gps_place *at, bool synced) {
    const struct gps_write all = LASTING(gps_fill_of(at->base, at->size, 1, CU_STREAM_LEGACY));
    return (CUresult)gps_memory_sync(&all, synced);
}

/* A program that asks for P2P_TOKENS is about to register the memory, and the driver turns
 * SYNC_MEMOPS on (H200, driver 580, 2026-11-27). */
static CUresult pointer_attribute_answer(CUpointer_attribute which, void *value,
                                         CUdeviceptr pointer) {
    CUdeviceptr base = 0; /* the driver's answer, where it is needed */
    if (which == CU_POINTER_ATTRIBUTE_RANGE_SIZE ||
        which == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE)
        (void)gps_real.cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, pointer);
    const struct gps_place at = gps_at_base(pointer, base);
    if (which == CU_POINTER_ATTRIBUTE_P2P_TOKENS && gps_place_is_pieced(&at))
        return sync_pieced(&at, true);
    if (at.parted)
        set_as_parted(which, value, &at);
    if (at.size && at.kind != GPS_PLACE_CREATED)
        set_as_allocation(which, value, &at);
    else
        set_as_made(which, value, pointer);
    return CUDA_SUCCESS;
}

/* A block that is not mapped would have none, and one may be swapped there just then. */
#define ASK(call)                                                                                  \
    pointer = gps_address_for_driver(pointer);                                                     \
    gps_memory_attributes(pointer);                                                                \
    CUresult result = call;                                                                        \
    if (result == CUDA_ERROR_INVALID_VALUE && gps_memory_was_swapped(pointer))                     \
    result = call

CUresult gps_on_cuPointerGetAttribute(void *value, CUpointer_attribute which, CUdeviceptr pointer) {
    ASK(gps_real.cuPointerGetAttribute(value, which, pointer));
    return result == CUDA_SUCCESS ? pointer_attribute_answer(which, value, pointer) : result;
}

CUresult gps_on_cuPointerGetAttributes(unsigned int count, CUpointer_attribute *which,
                                       void **values, CUdeviceptr pointer) {
    ASK(gps_real.cuPointerGetAttributes(count, which, values, pointer));
    for (unsigned int i = 0; result == CUDA_SUCCESS && i < count; i++)
        result = pointer_attribute_answer(which[i], values[i], pointer);
    return result;
}

CUresult gps_on_cuPointerSetAttribute(const void *value, CUpointer_attribute which,
                                      CUdeviceptr pointer) {
    int code;
    pointer = gps_address_for_driver(pointer);
    const struct gps_place at = gps_at(pointer);
    if (!value || which != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !gps_place_is_pieced(&at))
        return gps_real.cuPointerSetAttribute(value, which, pointer);
    return gps_capture_forbids(&code) ? (CUresult)code : sync_pieced(&at, *(const unsigned *)value);
}

/* --- how much is free --- */

CUresult gps_on_cuMemGetInfo_v2(size_t *available, size_t *total) {
    const CUresult result = gps_real.cuMemGetInfo_v2(available, total);
    if (result == CUDA_SUCCESS && available)
        *available = gps_memory_available(*available);
    return result;
}

/* --- calls for memory of cuMemCreate, with cuda_mapping.c, and for managed memory --- */

CUresult gps_on_cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                               CUdeviceptr pointer) {
    ASK(gps_real.cuMemGetAccess(flags, location, pointer));
    if (result != CUDA_SUCCESS)
        return result;
    const struct gps_place at = gps_at(pointer);
    if (gps_place_is_allocated(at))
        *flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    else if (at.open && location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id == at.device)
        *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return result;
}

/* Refuses calls that the driver would take, because to it this memory is not cudaMalloc's. */
#define REFUSE(name, parameters, arguments)                                                        \
    CUresult gps_on_##name parameters {                                                            \
        return gps_place_is_allocated(gps_at((CUdeviceptr)pointer)) ? CUDA_ERROR_INVALID_VALUE     \
                                                                    : gps_real.name arguments;     \
    }
REFUSE(cuMemAdvise, (CUdeviceptr pointer, size_t size, CUmem_advise advice, CUdevice device),
       (pointer, size, advice, device))
REFUSE(cuMemAdvise_v2,
       (CUdeviceptr pointer, size_t size, CUmem_advise advice, CUmemLocation location),
       (pointer, size, advice, location))

#define REFUSE_PREFETCH(suffix)                                                                    \
    REFUSE(cuMemPrefetchAsync##suffix,                                                             \
           (CUdeviceptr pointer, size_t size, CUdevice device, CUstream stream),                   \
           (pointer, size, device, stream))                                                        \
    REFUSE(cuMemPrefetchAsync_v2##suffix,                                                          \
           (CUdeviceptr pointer, size_t size, CUmemLocation location, unsigned int flags,          \
            CUstream stream),                                                                      \
           (pointer, size, location, flags, stream))
REFUSE_PREFETCH()
REFUSE_PREFETCH(_ptsz)
