/*
 * External memory: that of cuMemCreate, by a descriptor that the driver takes over, and its
 * buffers, each a block of its own at its own addresses. A card reads where a handle points to: one
 * that is destroyed ends the process.
 */
#include "block.h"
#include "context.h"
#include "physical.h"
#include "space.h"
#include "state.h"

#include "../protocol.h"

struct CUextMemory_st {
    struct physical *memory;
    CUcontext context;
    uint64_t size; /* as the program says: the driver does not look at the memory's */
    bool dedicated;
    struct CUextMemory_st *next;
};

static struct CUextMemory_st *all;

static CUresult check_type(CUexternalMemoryHandleType type) {
    switch (type) {
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD:
        return CUDA_SUCCESS;
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32:
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_KMT:
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP:
    case CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF:
    case 9: /* of a dma-buf, in newer headers */
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult check_description(const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *from) {
    static const unsigned none[sizeof from->reserved / sizeof *from->reserved];
    if (!from->size || from->flags & ~(unsigned)CUDA_EXTERNAL_MEMORY_DEDICATED ||
        memcmp(from->reserved, none, sizeof none) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    return check_type(from->type);
}

/* Under the state lock. */
static CUresult import(CUcontext context, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *from,
                       CUexternalMemory *out) {
    CUmemGenericAllocationHandle handle;
    struct CUextMemory_st *made = calloc(1, sizeof *made);
    const CUresult result =
        made ? physical_import(from->handle.fd, &handle) : CUDA_ERROR_OUT_OF_MEMORY;
    if (result) {
        free(made);
        return result;
    }
    *made = (struct CUextMemory_st){.memory = physical_find(handle),
                                    .context = context,
                                    .size = from->size,
                                    .dedicated = from->flags,
                                    .next = all};
    all = made;
    *out = made;
    return CUDA_SUCCESS;
}

/* The descriptor is closed, too, where its memory is refused. */
CUresult CUDAAPI cuImportExternalMemory(CUexternalMemory *out,
                                        const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *from) {
    TRY(state_asked());
    CURRENT(context);
    TRY(out && from ? check_description(from) : CUDA_ERROR_INVALID_VALUE);
    state_lock();
    const CUresult result = from->handle.fd < 0 ? CUDA_ERROR_UNKNOWN : import(context, from, out);
    state_unlock();
    const int cancel = state_uncancelled();
    close(from->handle.fd);
    pthread_setcancelstate(cancel, NULL);
    return result;
}

static struct CUextMemory_st **find(CUexternalMemory external) {
    struct CUextMemory_st **link = &all;
    while (*link && *link != external)
        link = &(*link)->next;
    if (!*link || !(*link)->context->alive)
        raise(SIGSEGV);
    return link;
}

enum { ADDRESS_BITS = 47 };

static CUresult check_buffer(const struct CUextMemory_st *external,
                             const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *wanted) {
    const uint64_t offset = wanted->offset, size = wanted->size;
    if (!size || wanted->flags || offset + size > external->size || (external->dedicated && offset))
        return CUDA_ERROR_INVALID_VALUE;
    REFUSE(size >> ADDRESS_BITS, CUDA_ERROR_OUT_OF_MEMORY);
    return offset > external->memory->size || size > external->memory->size - offset
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}

/* Under the state lock. */
static CUresult map(const struct CUextMemory_st *external, uint64_t offset, uint64_t size,
                    CUdeviceptr *out) {
    const uint64_t skip = offset % SIM_BLOCK;
    const uint64_t whole = (skip + size + SIM_BLOCK - 1) & ~(SIM_BLOCK - 1);
    struct physical *const memory = external->memory;
    struct block *block = calloc(1, sizeof *block);
    const uint64_t address = block ? space_take(whole, 0, block) : 0;
    if (!address) {
        free(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *block = (struct block){.id = memory->id,
                            .address = address,
                            .size = whole,
                            .offset = memory->offset + offset - skip,
                            .requested = size,
                            .serial = state_serial(),
                            .card = memory->card,
                            .kind = BLOCK_EXTERNAL,
                            .context = external->context,
                            .external = memory,
                            .skip = skip};
    memory->mappings++;
    block_link(block);
    *out = address + skip;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuExternalMemoryGetMappedBuffer(CUdeviceptr *out, CUexternalMemory external,
                                                 const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *wanted) {
    TRY(state_check());
    REFUSE(!out || !external || !wanted, CUDA_ERROR_INVALID_VALUE);
    STATE_LOCKED();
    const struct CUextMemory_st *found = *find(external);
    TRY(check_buffer(found, wanted));
    return map(found, wanted->offset, wanted->size, out);
}

/* Its buffers stay, and hold the memory. */
CUresult CUDAAPI cuDestroyExternalMemory(CUexternalMemory external) {
    TRY(state_check());
    REFUSE(!external, CUDA_ERROR_INVALID_VALUE);
    state_lock();
    struct CUextMemory_st **link = find(external);
    *link = external->next;
    external->memory->references--;
    physical_release_unused(external->memory);
    state_unlock();
    free(external);
    return CUDA_SUCCESS;
}
