/*
 * Pools of the program's own; see pool.h. A pool's descriptor is a file that says which pool it is;
 * a pointer of another process is opened at the daemon like that process's legacy handle.
 */
#include "pool.h"

#include "block.h"
#include "context.h"
#include "device.h"
#include "link.h"
#include "space.h"
#include "state.h"
#include "stream.h"

#define MAGIC UINT64_C(0x6c6f6f70206d6973)

struct shared_pool {
    uint64_t magic, serial;
    uint32_t client, card;
};

struct shared_pointer {
    struct shared_pool pool;
    uint64_t address;
};
_Static_assert(sizeof(struct shared_pointer) <= sizeof(CUmemPoolPtrExportData), "it fits");

static struct pool *pools;

struct pool *pool_find(CUmemoryPool handle) {
    struct pool *pool = pools;
    while (pool && (CUmemoryPool)(void *)pool != handle)
        pool = pool->next;
    return pool && !pool->destroyed ? pool : NULL;
}

static CUresult add(struct pool made, CUmemoryPool *out) {
    struct pool *pool = malloc(sizeof *pool);
    REFUSE(!pool, CUDA_ERROR_OUT_OF_MEMORY);
    made.next = pools;
    *pool = made;
    pools = pool;
    *out = (CUmemoryPool)(void *)pool;
    return CUDA_SUCCESS;
}

static CUresult check_properties(const CUmemPoolProps *wanted) {
    if (!wanted || wanted->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        wanted->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    if (wanted->handleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    return device_valid(wanted->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *wanted) {
    TRY(state_asked());
    TRY(out ? check_properties(wanted) : CUDA_ERROR_INVALID_VALUE);
    STATE_LOCKED();
    return add((struct pool){.card = device_card(wanted->location.id),
                             .client = link_client(),
                             .serial = state_serial(),
                             .types = (unsigned)wanted->handleTypes},
               out);
}

/* What was allocated from it stays. */
CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool handle) {
    TRY(state_asked());
    STATE_LOCKED();
    struct pool *pool = pool_find(handle);
    if (pool)
        pool->destroyed = true;
    return pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* --- pools between processes --- */

static struct shared_pool name_of(const struct pool *pool) {
    return (struct shared_pool){MAGIC, pool->serial, pool->client, pool->card};
}

static CUresult write_file(struct shared_pool shared, int *out) {
    int fd = memfd_create("gpusim-pool", MFD_CLOEXEC);
    REFUSE(fd < 0, CUDA_ERROR_OPERATING_SYSTEM);
    if (pwrite(fd, &shared, sizeof shared, 0) != sizeof shared) {
        close(fd);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    *out = fd;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolExportToShareableHandle(void *out, CUmemoryPool handle,
                                                  CUmemAllocationHandleType type,
                                                  unsigned long long flags) {
    TRY(state_asked());
    state_lock();
    const struct pool *pool = pool_find(handle);
    CUresult result = out && !flags && pool && !pool->imported && pool->types & type
                          ? write_file(name_of(pool), out)
                          : CUDA_ERROR_INVALID_VALUE;
    state_unlock();
    return result;
}

CUresult CUDAAPI cuMemPoolImportFromShareableHandle(CUmemoryPool *out, void *from,
                                                    CUmemAllocationHandleType type,
                                                    unsigned long long flags) {
    struct shared_pool shared;
    TRY(state_asked());
    if (!out || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    if (pread((int)(intptr_t)from, &shared, sizeof shared, 0) != sizeof shared ||
        shared.magic != MAGIC)
        return CUDA_ERROR_UNKNOWN;
    state_lock();
    CUresult result = add((struct pool){.card = shared.card,
                                        .client = shared.client,
                                        .serial = shared.serial,
                                        .imported = true},
                          out);
    state_unlock();
    return result;
}

/* --- pointers between processes --- */

CUresult CUDAAPI cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr address) {
    struct span span;
    CUresult result = state_asked();
    if (result || !out)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    STATE_LOCKED();
    const bool found = block_find(address, &span) && span.base == address && span.block->pool &&
                       span.block->pool->types && span.block->kind == BLOCK_POOL;
    if (found) {
        const struct shared_pointer shared = {name_of(span.block->pool), address};
        struct sim_request request = {.op = SIM_EXPORT, .a = span.block->id};
        result = link_call(&request, NULL);
        memset(out, 0, sizeof *out);
        memcpy(out, &shared, sizeof shared);
    }
    return found ? result : CUDA_ERROR_INVALID_VALUE;
}

static struct block *imported(uint64_t id) {
    for (CUcontext context = context_first(); context; context = context->next)
        for (struct block *block = context->blocks.first; block; block = block->next)
            if (block->kind == BLOCK_POOL_IMPORT && block->id == id)
                return block;
    return NULL;
}

static void close_at_daemon(uint64_t id) {
    struct sim_request request = {.op = SIM_CLOSE, .a = id};
    link_call(&request, NULL);
}

static CUresult open_pointer(CUcontext context, struct pool *pool, uint64_t address,
                             CUdeviceptr *out) {
    struct sim_request request = {.op = SIM_OPEN, .a = pool->client, .b = address};
    struct sim_reply reply;
    TRY(link_call(&request, &reply));
    const struct block *before = imported(reply.a);
    if (before) {
        close_at_daemon(reply.a);
        *out = before->address;
        return CUDA_SUCCESS;
    }
    struct block *block = calloc(1, sizeof *block);
    if (!block || !(block->address = space_take(reply.c, address, block))) {
        free(block);
        close_at_daemon(reply.a);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    block->id = reply.a;
    block->offset = reply.b;
    block->size = block->requested = reply.c;
    block->card = reply.device;
    block->serial = state_serial();
    block->kind = BLOCK_POOL_IMPORT;
    block->context = context;
    block->pool = pool;
    block_link(block);
    *out = block->address;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemPoolImportPointer(CUdeviceptr *out, CUmemoryPool handle,
                                        CUmemPoolPtrExportData *data) {
    struct shared_pointer shared;
    TRY(state_asked());
    CURRENT(context);
    REFUSE(!out || !data, CUDA_ERROR_INVALID_VALUE);
    memcpy(&shared, data, sizeof shared);
    STATE_LOCKED();
    struct pool *pool = pool_find(handle);
    return pool && pool->imported && shared.pool.magic == MAGIC &&
                   shared.pool.client == pool->client && shared.pool.serial == pool->serial
               ? open_pointer(context, pool, shared.address, out)
               : CUDA_ERROR_INVALID_VALUE;
}

/* --- allocations --- */

static CUresult allocate(CUdeviceptr *out, size_t size, CUmemoryPool handle, CUstream named,
                         bool per_thread) {
    TRY(state_asked());
    RESOLVED(stream, named, per_thread);
    TRY(capture_forbidden());
    STATE_LOCKED();
    struct pool *pool = pool_find(handle);
    return out && size && pool && !pool->imported
               ? block_allocate_from(stream_context(stream), pool, size, out)
               : CUDA_ERROR_INVALID_VALUE;
}

BOTH(cuMemAllocFromPoolAsync, (CUdeviceptr * out, size_t size, CUmemoryPool pool, CUstream stream),
     allocate(out, size, pool, stream, per_thread))
