/* Allocating and freeing: the cuMem* calls over blocks and host memory. */
#include "block.h"
#include "context.h"
#include "device.h"
#include "host.h"
#include "link.h"
#include "state.h"
#include "stream.h"

enum { PITCH = 512 };

static CUresult allocate(CUdeviceptr *out, uint64_t size, enum block_kind kind) {
    CURRENT(context);
    TRY(capture_forbidden());
    REFUSE(!out || !size, CUDA_ERROR_INVALID_VALUE);
    STATE_LOCKED();
    return block_allocate(context, kind, size, out);
}

CALL(cuMemAlloc_v2, (CUdeviceptr * out, size_t size), allocate(out, size, BLOCK_PLAIN))

CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
                                    unsigned int element) {
    size_t row, size;
    CURRENT(context);
    if (!out || !pitch || !width || !height || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    if (__builtin_add_overflow(width, PITCH - 1, &row) ||
        __builtin_mul_overflow(row & ~(size_t)(PITCH - 1), height, &size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    TRY(allocate(out, size, BLOCK_PLAIN));
    *pitch = row & ~(size_t)(PITCH - 1);
    return CUDA_SUCCESS;
}

/* Without a current context a free works all the same; with one that has ended it does not. */
static CUresult check_free(void) {
    CUcontext context;
    CUresult result = context_current(&context);
    return result == CUDA_ERROR_INVALID_CONTEXT ? CUDA_SUCCESS : result;
}

/* A free waits for all that runs on the card, whatever memory that uses. */
static void wait_for_card(CUdeviceptr address) {
    struct span span;
    uint32_t card = 0;
    state_lock();
    bool found = block_find(address, &span);
    if (found)
        card = span.block->card;
    state_unlock();
    if (found)
        stream_wait_card(card);
}

CUresult CUDAAPI cuMemFree_v2(CUdeviceptr address) {
    CUresult result = check_free();
    if (!result)
        result = capture_forbidden();
    if (result || !address)
        return result;
    wait_for_card(address);
    state_lock();
    result = block_free(address);
    if (result)
        result = host_free(address, true);
    state_unlock();
    if (!result) /* the address is another's before the free returns */
        state_pause("GPUSHARE_SIM_LATE_FREE_MS");
    return result;
}

/* --- the first ABI: 32-bit addresses, which this card has none of --- */

CUresult CUDAAPI cuMemAlloc(CUdeviceptr_v1 *out, unsigned int size) {
    CURRENT(context);
    return out && size ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
}

CALL(cuMemAllocPitch,
     (CUdeviceptr_v1 * out, unsigned int *pitch, unsigned int width, unsigned int height,
      unsigned int element),
     pitch &&element ? cuMemAlloc(out, width &&height) : CUDA_ERROR_INVALID_VALUE)
CALL(cuMemFree, (CUdeviceptr_v1 address), cuMemFree_v2(address))

CUresult CUDAAPI cuMemGetAddressRange(CUdeviceptr_v1 *base, unsigned int *size,
                                      CUdeviceptr_v1 address) {
    CURRENT(context);
    return CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI cuMemHostGetDevicePointer(CUdeviceptr_v1 *out, void *pointer, unsigned int flags) {
    CURRENT(context);
    return CUDA_ERROR_INVALID_VALUE;
}

/* --- pools: what a card's own one needs, and frees of all (pool.h) --- */

/* A free whose turn in its stream has not come. Under the state lock. */
struct freeing {
    CUdeviceptr address;
    CUstream stream;
    struct freeing *next;
};

static struct freeing *freeings;

static struct freeing **find_freeing(CUdeviceptr address) {
    struct freeing **link = &freeings;
    while (*link && (*link)->address != address)
        link = &(*link)->next;
    return link;
}

static void remove_freeing(const struct freeing *freeing) {
    struct freeing **link = &freeings;
    while (*link && *link != freeing)
        link = &(*link)->next;
    if (*link)
        *link = freeing->next;
}

/* From then on the address may be another's. */
static CUresult run_freeing(void *argument) {
    const struct freeing *freeing = argument;
    STATE_LOCKED();
    remove_freeing(freeing);
    block_free(freeing->address);
    return CUDA_SUCCESS;
}

/* It has not run if its context is lost. */
static void end_freeing(void *argument) {
    state_lock();
    remove_freeing(argument);
    state_unlock();
    free(argument);
}

static const struct work freeing_work = {.run = run_freeing, .end = end_freeing, .once = true};

/* NULL: it cannot be freed, or is to be freed already. */
static struct freeing *add_freeing(CUdeviceptr address, CUstream stream) {
    struct freeing *freeing = calloc(1, sizeof *freeing);
    state_lock();
    const bool may = freeing && block_may_free(address) && !*find_freeing(address);
    if (may) {
        *freeing = (struct freeing){address, stream, freeings};
        freeings = freeing;
    }
    state_unlock();
    if (may)
        return freeing;
    free(freeing);
    return NULL;
}

/* What the stream frees in its turn is the same stream's again at once: then that free frees
 * nothing. 0: there is none of that size. */
static CUdeviceptr take_freeing(CUstream stream, uint64_t size) {
    struct span span;
    for (struct freeing *freeing = freeings; freeing; freeing = freeing->next) {
        const CUdeviceptr address = freeing->address;
        if (freeing->stream != stream || !block_find(address, &span) || span.size != size ||
            span.block->kind != BLOCK_POOL || span.block->pool)
            continue;
        remove_freeing(freeing);
        freeing->address = 0;
        return address;
    }
    return 0;
}

/* The memory is of the stream's context, whichever is current. */
static CUresult allocate_on(CUstream stream, CUdeviceptr *out, uint64_t size) {
    CUresult result = CUDA_SUCCESS;
    STATE_LOCKED();
    const CUdeviceptr again = take_freeing(stream, size);
    if (again)
        *out = again;
    else
        result = block_allocate(stream_context(stream), BLOCK_POOL, size, out);
    return result;
}

static CUresult allocate_async(CUdeviceptr *out, size_t size, CUstream named, bool per_thread) {
    RESOLVED(stream, named, per_thread);
    TRY(capture_forbidden());
    REFUSE(!out, CUDA_ERROR_INVALID_VALUE);
    if (size)
        return allocate_on(stream, out, size);
    *out = 0;
    return CUDA_SUCCESS;
}

/* A capture takes none on its stream: there are no nodes for it. On another one it can forbid them.
 */
static CUresult free_async(CUdeviceptr address, CUstream named, bool per_thread) {
    CUstream stream;
    CUresult result = stream_resolve(named, per_thread, &stream);
    const bool captured = !result && stream_capturing(stream);
    if (!result && !captured)
        result = capture_forbidden();
    if (result || !address)
        return result;
    struct freeing *freeing = captured ? NULL : add_freeing(address, stream);
    return freeing ? stream_submit(stream, &freeing_work, freeing) : CUDA_ERROR_INVALID_VALUE;
}

/* A pool has what the contexts of its device have. */
CUresult CUDAAPI cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void *value) {
    uint32_t card;
    TRY(state_check());
    if (!value || !device_of_pool(pool, &card) || which != CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
        return CUDA_ERROR_INVALID_VALUE;
    cuuint64_t bytes = 0;
    state_lock();
    for (CUcontext context = context_first(); context; context = context->next)
        if (context->card == card)
            bytes += block_pool(context);
    state_unlock();
    *(cuuint64_t *)value = bytes;
    return CUDA_SUCCESS;
}

BOTH(cuMemAllocAsync, (CUdeviceptr * out, size_t size, CUstream stream),
     allocate_async(out, size, stream, per_thread))
BOTH(cuMemFreeAsync, (CUdeviceptr address, CUstream stream),
     free_async(address, stream, per_thread))

/* --- host memory --- */

static CUresult allocate_host(uint64_t *out, size_t size, bool managed) {
    CURRENT(context);
    STATE_LOCKED();
    return host_allocate(context, size, managed, out);
}

CUresult CUDAAPI cuMemHostAlloc(void **out, size_t size, unsigned int flags) {
    uint64_t base = 0;
    CURRENT(context);
    TRY(capture_forbidden());
    REFUSE(!out || flags > 7, CUDA_ERROR_INVALID_VALUE);
    TRY(size ? allocate_host(&base, size, false) : CUDA_SUCCESS);
    *out = (void *)(uintptr_t)base;
    return CUDA_SUCCESS;
}

CALL(cuMemAllocHost_v2, (void **out, size_t size), cuMemHostAlloc(out, size, 0))
CALL(cuMemAllocHost, (void **out, unsigned int size), cuMemHostAlloc(out, size, 0))

CUresult CUDAAPI cuMemFreeHost(void *pointer) {
    CUresult result = check_free();
    if (!result)
        result = capture_forbidden();
    if (result || !pointer)
        return result;
    state_lock();
    const struct host_range *range = host_find((uint64_t)(uintptr_t)pointer);
    CUcontext context = range ? range->context : NULL;
    state_unlock();
    if (context)
        stream_wait_card(context->card);
    state_lock();
    result = host_free((uint64_t)(uintptr_t)pointer, false);
    state_unlock();
    return result;
}

CUresult CUDAAPI cuMemHostRegister_v2(void *pointer, size_t size, unsigned int flags) {
    CURRENT(context);
    TRY(capture_forbidden());
    REFUSE(!pointer || !size || flags > 15, CUDA_ERROR_INVALID_VALUE);
    STATE_LOCKED();
    return host_register(context, (uint64_t)(uintptr_t)pointer, size);
}

CALL(cuMemHostRegister, (void *pointer, size_t size, unsigned int flags),
     cuMemHostRegister_v2(pointer, size, flags))

CUresult CUDAAPI cuMemHostUnregister(void *pointer) {
    CURRENT(context);
    REFUSE(!pointer, CUDA_ERROR_INVALID_VALUE);
    stream_wait_card(context->card);
    STATE_LOCKED();
    return host_unregister((uint64_t)(uintptr_t)pointer);
}

CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *out, size_t size, unsigned int flags) {
    uint64_t base;
    CURRENT(context);
    TRY(capture_forbidden());
    if (!out || !size || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    TRY(allocate_host(&base, size, true));
    *out = base;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *pointer, unsigned int flags) {
    CURRENT(context);
    REFUSE(!out || flags, CUDA_ERROR_INVALID_VALUE);
    state_lock();
    const struct host_range *range = host_find((uint64_t)(uintptr_t)pointer);
    bool pinned = range && !range->managed;
    state_unlock();
    REFUSE(!pinned, CUDA_ERROR_INVALID_VALUE);
    *out = (CUdeviceptr)(uintptr_t)pointer;
    return CUDA_SUCCESS;
}

/* --- how much there is --- */

CUresult CUDAAPI cuMemGetInfo_v2(size_t *available, size_t *total) {
    struct sim_reply reply;
    CURRENT(context);
    REFUSE(!available || !total, CUDA_ERROR_INVALID_VALUE);
    struct sim_request request = {.op = SIM_MEMINFO, .device = context->card};
    TRY(link_call(&request, &reply));
    *available = reply.a;
    *total = reply.b;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetInfo(unsigned int *available, unsigned int *total) {
    size_t wide[2];
    REFUSE(!available || !total, CUDA_ERROR_INVALID_VALUE);
    TRY(cuMemGetInfo_v2(&wide[0], &wide[1]));
    *available = wide[0] > UINT32_MAX ? UINT32_MAX : (unsigned int)wide[0];
    *total = wide[1] > UINT32_MAX ? UINT32_MAX : (unsigned int)wide[1];
    return CUDA_SUCCESS;
}
