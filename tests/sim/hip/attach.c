/*
 * Memory handles; see runtime.h.
 *
 * | bytes | content |
 * | 0 to 31 | eight words of ROCr's, here: the daemon's id of the exporter, its address of the
 * block, the block's id (two words), its pages, a counter, the offset of a piece of a block with
 * bit 31, a token | | 32 to 47 | size of the allocation, offset of the pointer | | 48 to 55 | pid;
 * 7: the exporter's current device | What nobody writes is garbage, another one each time.
 */
#include "runtime.h"

#include "../driver/block.h"
#include "../driver/context.h"
#include "../driver/device.h"
#include "../driver/handle.h"
#include "../driver/import.h"
#include "../driver/link.h"
#include "../driver/state.h"

enum { PIECE = 1u << 31, LATE_MS = 1000 };

struct bytes {
    uint32_t client, memory, block, block_high, pages, counter, piece, token;
    uint64_t size, offset;
    uint32_t pid, device;
    uint64_t garbage;
};
_Static_assert(sizeof(struct bytes) == sizeof(hipIpcMemHandle_t), "a handle is 64 bytes");

/* Memory that is open. In 6 each open has an entry of its own. */
struct attached {
    CUdeviceptr base;
    uint64_t size, count;
    struct bytes handle;
    int device;
    struct attached *next;
};

static struct {
    pthread_mutex_t lock;
    struct attached *first;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_set(const char *name, const char *value) {
    const char *given = getenv(name);
    return given && (!value || strcmp(given, value) == 0);
}

/* The one value of the flags that this runtime takes. */
static unsigned flags_value(void) {
    return hip_is_5() ? 0 : 1;
}

/* --- export --- */

/* What one of AMD's did for ever: it held the memory. */
static void pin(const struct block *block) {
    struct sim_request request = {.op = SIM_ATTACH, .a = block->id};
    if (is_set("GPUSHARE_SIM_HIP_PINNED", NULL))
        link_call(&request, NULL);
}

static void describe(const struct span *span, CUdeviceptr pointer, struct bytes *out) {
    static atomic_uint garbage;
    const struct block *block = span->block;
    const uint64_t offset = span->base - block->address;
    const uint64_t noise = 0x9e3779b97f4a7c15u * (atomic_fetch_add(&garbage, 1) + 1);
    *out = (struct bytes){.client = link_client(),
                          .memory = (uint32_t)(block->address >> SIM_BLOCK_SHIFT),
                          .block = (uint32_t)block->id,
                          .block_high = (uint32_t)(block->id >> 32),
                          .pages = (uint32_t)(block->size >> HANDLE_PAGE_SHIFT),
                          .counter = (uint32_t)block->serial,
                          .piece = block->small ? PIECE | (uint32_t)offset : 0,
                          .size = span->size,
                          .offset = pointer - span->base,
                          .pid = (uint32_t)getpid(),
                          .device = HIP_GENERATION >= 7 ? (uint32_t)hip_device() : (uint32_t)noise,
                          .garbage = noise};
}

static hipError_t export(void *handle, CUdeviceptr pointer) {
    struct span span;
    if (!handle || !block_find(pointer, &span) || span.block->kind != BLOCK_PLAIN)
        return hipErrorInvalidValue;
    struct sim_request request = {.op = SIM_EXPORT, .a = span.block->id};
    if (!span.block->exported && link_call(&request, NULL))
        return hipErrorInvalidValue;
    if (!span.block->exported)
        pin(span.block);
    span.block->exported = true;
    struct bytes content;
    describe(&span, pointer, &content);
    memcpy(handle, &content, sizeof content);
    return hipSuccess;
}

hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *pointer) {
    hipError_t code = hip_ready();
    if (code != hipSuccess)
        return hip_answer(code);
    state_lock();
    code = export(handle, (CUdeviceptr)(uintptr_t)pointer);
    state_unlock();
    return hip_answer(code);
}

/* --- open --- */

static struct attached *find_equal(const struct bytes *handle) {
    for (struct attached *one = state.first; one; one = one->next)
        if (memcmp(&one->handle, handle, 32) == 0 && one->handle.offset == handle->offset)
            return one;
    return NULL;
}

/* With dma-buf the exporter answers: a dead one is waited for, one that has freed it never answers
 * (a process that has it open needs no answer). */
static hipError_t refuse(const struct bytes *handle) {
    struct sim_request request = {
        .op = SIM_OPEN, .a = handle->client, .b = (uint64_t)handle->memory << SIM_BLOCK_SHIFT};
    struct sim_reply reply;
    if (!is_set("GPUSHARE_SIM_HIP_ATTACH", "dmabuf"))
        return hipErrorInvalidDevicePointer;
    const CUresult result = link_call(&request, &reply);
    if (result == CUDA_SUCCESS) {
        struct sim_request close = {.op = SIM_CLOSE, .a = reply.a};
        link_call(&close, NULL);
    }
    if (result == CUDA_ERROR_INVALID_HANDLE)
        usleep(LATE_MS * 1000);
    else
        for (;;)
            pause();
    return hipErrorInvalidDevicePointer;
}

static hipError_t map(const struct bytes *bytes, CUdeviceptr *out) {
    const struct handle handle = {.client = bytes->client,
                                  .memory = bytes->memory,
                                  .counter = bytes->counter,
                                  .pages = bytes->pages,
                                  .size = bytes->size,
                                  .offset = bytes->piece & ~PIECE};
    const uint64_t id = (uint64_t)bytes->block_high << 32 | bytes->block;
    state_lock();
    const CUresult result = import_attach(hip_context(), id, &handle, out);
    state_unlock();
    return result == CUDA_SUCCESS ? hipSuccess : hipErrorInvalidDevicePointer;
}

static hipError_t attach(const struct bytes *bytes, CUdeviceptr *out) {
    struct attached *one = HIP_GENERATION >= 7 ? find_equal(bytes) : NULL;
    if (one) {
        one->count++;
        *out = one->base;
        return hipSuccess;
    }
    one = calloc(1, sizeof *one);
    if (!one)
        return hipErrorOutOfMemory;
    *one = (struct attached){.size = bytes->size,
                             .count = 1,
                             .handle = *bytes,
                             .device = hip_device(),
                             .next = state.first};
    const hipError_t code = map(bytes, &one->base);
    if (code != hipSuccess) {
        free(one);
        return code;
    }
    state.first = one;
    *out = one->base;
    return hipSuccess;
}

/* What it looks at, and in which order. */
static hipError_t check(void *const *out, const struct bytes *bytes, unsigned flags) {
    if (!out || flags != flags_value() || !bytes->size)
        return hipErrorInvalidValue;
    if (bytes->pid == (uint32_t)getpid())
        return hipErrorInvalidContext;
    if (HIP_GENERATION >= 7 && bytes->device >= (uint32_t)device_count())
        return hipErrorInvalidValue;
    return hipSuccess;
}

hipError_t hipIpcOpenMemHandle(void **out, hipIpcMemHandle_t handle, unsigned flags) {
    struct bytes bytes;
    CUdeviceptr opened = 0;
    memcpy(&bytes, &handle, sizeof bytes);
    hipError_t code = hip_ready();
    if (code == hipSuccess)
        code = check(out, &bytes, flags);
    if (code != hipSuccess)
        return hip_answer(code);
    pthread_mutex_lock(&state.lock);
    code = attach(&bytes, &opened);
    pthread_mutex_unlock(&state.lock);
    if (code == hipSuccess)
        *out = (void *)(uintptr_t)opened;
    else if (code == hipErrorInvalidDevicePointer)
        code = refuse(&bytes);
    return hip_answer(code);
}

/* --- close, by any address of the memory --- */

static struct attached **find(CUdeviceptr address) {
    struct attached **link = &state.first;
    while (*link && address - (*link)->base >= (*link)->size)
        link = &(*link)->next;
    return link;
}

bool hip_attached(CUdeviceptr address, CUdeviceptr *base, int *device) {
    pthread_mutex_lock(&state.lock);
    const struct attached *one = *find(address);
    if (one) {
        *base = one->base;
        *device = one->device;
    }
    pthread_mutex_unlock(&state.lock);
    return one != NULL;
}

static hipError_t detach(CUdeviceptr address) {
    struct attached **link = find(address), *one = *link;
    if (!one)
        return hipErrorInvalidValue;
    if (--one->count)
        return hipSuccess;
    *link = one->next;
    state_lock();
    const CUresult result = import_close(one->base);
    state_unlock();
    free(one);
    return hip_code(result);
}

hipError_t hip_detach(CUdeviceptr address) {
    (void)cuCtxSynchronize();
    pthread_mutex_lock(&state.lock);
    const hipError_t code = detach(address);
    pthread_mutex_unlock(&state.lock);
    return code;
}

hipError_t hipIpcCloseMemHandle(void *pointer) {
    hipError_t code = hip_ready();
    if (code == hipSuccess)
        (void)cuStreamSynchronize(NULL);
    if (code == hipSuccess)
        code = pointer ? hip_detach((CUdeviceptr)(uintptr_t)pointer) : hipErrorInvalidValue;
    return hip_answer(code);
}

void hip_forget_attached(int device) {
    pthread_mutex_lock(&state.lock);
    struct attached **link = &state.first;
    while (*link) {
        struct attached *one = *link;
        if (one->device == device) {
            *link = one->next;
            free(one);
        } else {
            link = &one->next;
        }
    }
    pthread_mutex_unlock(&state.lock);
}
