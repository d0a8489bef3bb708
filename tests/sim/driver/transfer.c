/*
 * The cuMemcpy* and cuMemset* calls of ranges: what each may touch, in which stream, and whether
 * the caller waits. The variants of one call differ only in the stream that NULL means.
 */
#include "transfer.h"

#include "block.h"
#include "context.h"
#include "state.h"
#include "stream.h"

enum { STAGED_MOST = 65536, PAGE = 4096 };

/* One copy (width 0) or fill. */
struct task {
    struct place to, from;
    uint64_t size;
    uint32_t value;
    unsigned width;
    bool by_value; /* what is copied ends with the call */
    unsigned char staged[];
};

static CUresult run(void *argument) {
    struct task *task = argument;
    return task->width ? copy_pattern(&task->to, task->size, task->value, task->width)
                       : copy_bytes(&task->to, &task->from, task->size);
}

static bool lies_in(const struct place *place, uint64_t size, uint64_t address, uint64_t length) {
    return !place->pageable && place->address < address + length && address < place->address + size;
}

/* A fill is a kernel of the driver's. */
static CUresult hurt(const void *argument, uint64_t address, uint64_t size) {
    const struct task *task = argument;
    if (task->width)
        return lies_in(&task->to, task->size, address, size) ? CUDA_ERROR_ILLEGAL_ADDRESS
                                                             : CUDA_SUCCESS;
    return lies_in(&task->to, task->size, address, size) ||
                   lies_in(&task->from, task->size, address, size)
               ? CUDA_ERROR_LAUNCH_FAILED
               : CUDA_SUCCESS;
}

static void tell_copy(const struct task *task, CUDA_MEMCPY3D *copy) {
    const bool to_host = task->to.pageable, from_host = task->from.pageable;
    *copy = (CUDA_MEMCPY3D){.dstMemoryType = to_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                            .srcMemoryType = from_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                            .dstHost = to_host ? (void *)(uintptr_t)task->to.address : NULL,
                            .srcHost = from_host ? (void *)(uintptr_t)task->from.address : NULL,
                            .dstDevice = to_host ? 0 : task->to.address,
                            .srcDevice = from_host ? 0 : task->from.address,
                            .WidthInBytes = task->size,
                            .Height = 1,
                            .Depth = 1};
}

static void tell(void *argument, CUgraphNodeParams *what) {
    const struct task *task = argument;
    what->type = task->width ? CU_GRAPH_NODE_TYPE_MEMSET : CU_GRAPH_NODE_TYPE_MEMCPY;
    if (task->width)
        what->memset = (CUDA_MEMSET_NODE_PARAMS_v2){.dst = task->to.address,
                                                    .value = task->value,
                                                    .elementSize = task->width,
                                                    .width = task->size / task->width,
                                                    .height = 1};
    else
        tell_copy(task, &what->memcpy.copyParams);
}

static const struct work transferring = {.run = run, .hurt = hurt, .tell = tell};

/* The caller meets what faults there: the stream's own thread may make the copy. */
static void read_pages(const volatile unsigned char *from, uint64_t size) {
    for (uint64_t at = 0; at < size; at += PAGE)
        (void)from[at];
    (void)from[size - 1];
}

/* In the stream's turn, without waiting for it where the real driver does not. */
static CUresult submit(CUstream stream, const struct task *plan) {
    bool pageable = !plan->width && plan->from.pageable, captured = stream_capturing(stream);
    bool stage = pageable && (plan->by_value || (plan->size <= STAGED_MOST && !captured));
    struct task *task = malloc(sizeof *task + (stage ? plan->size : 0));
    REFUSE(!task, CUDA_ERROR_OUT_OF_MEMORY);
    *task = *plan;
    if (stage) {
        memcpy(task->staged, (void *)(uintptr_t)plan->from.address, plan->size);
        task->from.address = (uint64_t)(uintptr_t)task->staged;
    }
    bool wait = !plan->width && (plan->to.pageable || (pageable && !stage)) && !captured;
    CUresult result = wait ? stream_wait(stream) : CUDA_SUCCESS;
    if (result) {
        free(task);
        return result;
    }
    if (wait && pageable)
        read_pages((void *)(uintptr_t)plan->from.address, plan->size);
    result =
        stream_submit(stream, &transferring, task); /* behind what another thread has put there */
    return wait && !result ? stream_wait(stream) : result;
}

static CUresult now(CUstream stream, const struct task *plan) {
    TRY(stream_wait(stream));
    TRY(submit(stream, plan));
    return stream_wait(stream);
}

static CUresult perform(struct manner manner, struct task *task) {
    CURRENT(context);
    RESOLVED(stream, manner.named, manner.per_thread);
    return manner.async ? submit(stream, task) : now(stream, task);
}

static CUresult locate(struct end to, struct end from, uint64_t size, struct task *task) {
    CUcontext context;
    CUresult result = context_current(&context);
    *task = (struct task){.size = size};
    if (!result)
        result =
            copy_locate(to.address, size, (struct asker){context->card, true, to.side}, &task->to);
    if (!result)
        result = copy_locate(from.address, size, (struct asker){context->card, false, from.side},
                             &task->from);
    return result;
}

CUresult transfer_check(struct end to, struct end from, uint64_t size) {
    struct task task;
    return locate(to, from, size, &task);
}

/* A forbidden call spoils the capture, whatever its arguments. */
static CUresult begin(struct manner manner) {
    CURRENT(context);
    if (!manner.async && !manner.per_thread)
        TRY(capture_implicit(context));
    return CUDA_SUCCESS;
}

CUresult transfer_copy(struct end to, struct end from, uint64_t size, struct manner manner) {
    struct task task;
    CUcontext context;
    CUresult result = size ? begin(manner) : context_current(&context);
    if (result || !size)
        return result;
    result = locate(to, from, size, &task);
    return result ? result : perform(manner, &task);
}

static bool is_closed_to_fills(const struct CUctx_st *context, uint64_t to) {
    struct span span;
    STATE_LOCKED();
    bool closed = block_find(to, &span) && !context_reaches(context, span.block);
    return closed;
}

static CUresult locate_fill(uint64_t to, uint64_t count, uint32_t value, unsigned width,
                            struct task *task) {
    CURRENT(context);
    REFUSE(to % width || count > UINT64_MAX / width, CUDA_ERROR_INVALID_VALUE);
    *task = (struct task){.size = count * width, .value = value, .width = width};
    REFUSE(is_closed_to_fills(context, to), CUDA_ERROR_INVALID_VALUE);
    return copy_locate(to, task->size, (struct asker){context->card, true, SIDE_DEVICE}, &task->to);
}

CUresult transfer_check_fill(uint64_t to, uint64_t count, unsigned width) {
    struct task task;
    return count ? locate_fill(to, count, 0, width, &task) : CUDA_SUCCESS;
}

CUresult transfer_fill(uint64_t to, uint64_t count, uint32_t value, unsigned width,
                       struct manner manner) {
    CUcontext context;
    struct task task;
    CUresult result = context_current(&context);
    if (result || !count)
        return result;
    if (to % width == 0 && count <= UINT64_MAX / width)
        result = begin(manner);
    if (!result)
        result = locate_fill(to, count, value, width, &task);
    return result ? result : perform(manner, &task);
}

static CUresult keep(const struct task *task, const struct work **work, void **argument) {
    struct task *kept = malloc(sizeof *kept);
    REFUSE(!kept, CUDA_ERROR_OUT_OF_MEMORY);
    *kept = *task;
    *work = &transferring;
    *argument = kept;
    return CUDA_SUCCESS;
}

CUresult transfer_copy_node(struct end to, struct end from, uint64_t size, const struct work **work,
                            void **argument) {
    struct task task;
    CUresult result = locate(to, from, size, &task);
    return result ? result : keep(&task, work, argument);
}

CUresult transfer_fill_node(uint64_t to, uint64_t count, uint32_t value, unsigned width,
                            const struct work **work, void **argument) {
    struct task task;
    CUresult result = locate_fill(to, count, value, width, &task);
    return result ? result : keep(&task, work, argument);
}

CUresult transfer_word(uint64_t to, uint64_t word, uint64_t size, struct manner manner) {
    struct task task = {.size = size, .by_value = true};
    CURRENT(context);
    const struct asker asker = {context->card, false, SIDE_DEVICE};
    CUresult result = to % size ? CUDA_ERROR_INVALID_VALUE : copy_locate(to, size, asker, &task.to);
    if (!result)
        result = copy_locate((uint64_t)(uintptr_t)&word, size,
                             (struct asker){context->card, false, SIDE_ANY}, &task.from);
    task.to.asker.writes = true;
    return result ? result : perform(manner, &task);
}

#define WORDS(name, type)                                                                          \
    CUresult CUDAAPI name(CUstream stream, CUdeviceptr to, type word, unsigned int flags) {        \
        return transfer_word(to, word, sizeof word, QUEUED);                                       \
    }                                                                                              \
    CUresult CUDAAPI name##_ptsz(CUstream stream, CUdeviceptr to, type word, unsigned int flags) { \
        return transfer_word(to, word, sizeof word, QUEUED_PTSZ);                                  \
    }
WORDS(cuStreamWriteValue32, cuuint32_t)
WORDS(cuStreamWriteValue32_v2, cuuint32_t)
WORDS(cuStreamWriteValue64, cuuint64_t)
WORDS(cuStreamWriteValue64_v2, cuuint64_t)

#define END(pointer, side) ((struct end){(uint64_t)(uintptr_t)(pointer), side})

/* Each side is reached from its own context. */
static CUresult copy_peer(CUdeviceptr to, CUcontext there, CUdeviceptr from, CUcontext here,
                          uint64_t size, struct manner manner) {
    struct task task = {.size = size};
    if (!size || !there || !here || !context_known(there) || !context_known(here))
        return transfer_copy(END(to, SIDE_DEVICE), END(from, SIDE_DEVICE), size, manner);
    TRY(begin(manner));
    TRY(copy_locate(to, size, (struct asker){there->card, true, SIDE_DEVICE}, &task.to));
    TRY(copy_locate(from, size, (struct asker){here->card, false, SIDE_DEVICE}, &task.from));
    return perform(manner, &task);
}

/* The four forms of one copy; `to` and `from` are the parameters, as types and names. */
#define COPIES(base, v, to_type, to_side, from_type, from_side)                                    \
    CUresult CUDAAPI base##v(to_type to, from_type from, size_t size) {                            \
        return transfer_copy(END(to, to_side), END(from, from_side), size, WAITING);               \
    }                                                                                              \
    CUresult CUDAAPI base##v##_ptds(to_type to, from_type from, size_t size) {                     \
        return transfer_copy(END(to, to_side), END(from, from_side), size, WAITING_PTDS);          \
    }                                                                                              \
    CUresult CUDAAPI base##Async##v(to_type to, from_type from, size_t size, CUstream stream) {    \
        return transfer_copy(END(to, to_side), END(from, from_side), size, QUEUED);                \
    }                                                                                              \
    CUresult CUDAAPI base##Async##v##_ptsz(to_type to, from_type from, size_t size,                \
                                           CUstream stream) {                                      \
        return transfer_copy(END(to, to_side), END(from, from_side), size, QUEUED_PTSZ);           \
    }

COPIES(cuMemcpy, , CUdeviceptr, SIDE_ANY, CUdeviceptr, SIDE_ANY)
COPIES(cuMemcpyHtoD, _v2, CUdeviceptr, SIDE_DEVICE, const void *, SIDE_ANY)
COPIES(cuMemcpyDtoH, _v2, void *, SIDE_ANY, CUdeviceptr, SIDE_DEVICE)
COPIES(cuMemcpyDtoD, _v2, CUdeviceptr, SIDE_DEVICE, CUdeviceptr, SIDE_DEVICE)

CALL(cuMemcpyPeer,
     (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size),
     copy_peer(to, to_context, from, from_context, size, WAITING))
CALL(cuMemcpyPeer_ptds,
     (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size),
     copy_peer(to, to_context, from, from_context, size, WAITING_PTDS))
CALL(cuMemcpyPeerAsync,
     (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size,
      CUstream stream),
     copy_peer(to, to_context, from, from_context, size, QUEUED))
CALL(cuMemcpyPeerAsync_ptsz,
     (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size,
      CUstream stream),
     copy_peer(to, to_context, from, from_context, size, QUEUED_PTSZ))

#define FILLS(base, type, width)                                                                   \
    CUresult CUDAAPI base##_v2(CUdeviceptr to, type value, size_t count) {                         \
        return transfer_fill(to, count, value, width, WAITING);                                    \
    }                                                                                              \
    CUresult CUDAAPI base##_v2_ptds(CUdeviceptr to, type value, size_t count) {                    \
        return transfer_fill(to, count, value, width, WAITING_PTDS);                               \
    }                                                                                              \
    CUresult CUDAAPI base##Async(CUdeviceptr to, type value, size_t count, CUstream stream) {      \
        return transfer_fill(to, count, value, width, QUEUED);                                     \
    }                                                                                              \
    CUresult CUDAAPI base##Async_ptsz(CUdeviceptr to, type value, size_t count, CUstream stream) { \
        return transfer_fill(to, count, value, width, QUEUED_PTSZ);                                \
    }                                                                                              \
    CUresult CUDAAPI base(CUdeviceptr_v1 to, type value, unsigned int count) {                     \
        return transfer_fill(to, count, value, width, WAITING);                                    \
    }

FILLS(cuMemsetD8, unsigned char, 1)
FILLS(cuMemsetD16, unsigned short, 2)
FILLS(cuMemsetD32, unsigned int, 4)

/* --- the first ABI: addresses of 32 bits, where nothing lies --- */

CALL(cuMemcpyHtoD, (CUdeviceptr_v1 to, const void *from, unsigned int size),
     cuMemcpyHtoD_v2(to, from, size))
CALL(cuMemcpyDtoH, (void *to, CUdeviceptr_v1 from, unsigned int size),
     cuMemcpyDtoH_v2(to, from, size))
CALL(cuMemcpyDtoD, (CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned int size),
     cuMemcpyDtoD_v2(to, from, size))
CALL(cuMemcpyHtoDAsync, (CUdeviceptr_v1 to, const void *from, unsigned int size, CUstream stream),
     cuMemcpyHtoDAsync_v2(to, from, size, stream))
CALL(cuMemcpyDtoHAsync, (void *to, CUdeviceptr_v1 from, unsigned int size, CUstream stream),
     cuMemcpyDtoHAsync_v2(to, from, size, stream))
CALL(cuMemcpyDtoDAsync,
     (CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned int size, CUstream stream),
     cuMemcpyDtoDAsync_v2(to, from, size, stream))

/* --- newer than the headers --- */

CALL(cuMemcpyWithAttributesAsync,
     (CUdeviceptr to, CUdeviceptr from, size_t size, CUmemcpyAttributes *attributes,
      CUstream stream),
     cuMemcpyAsync(to, from, size, stream))
CALL(cuMemcpyWithAttributesAsync_ptsz,
     (CUdeviceptr to, CUdeviceptr from, size_t size, CUmemcpyAttributes *attributes,
      CUstream stream),
     cuMemcpyAsync_ptsz(to, from, size, stream))
CALL(cuSimNewestCopy, (CUdeviceptr to, CUdeviceptr from, size_t size), cuMemcpy(to, from, size))
