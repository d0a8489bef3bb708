/* The cuIpc* calls: what they check, and in which order (both seen on the H200). */
#include "block.h"
#include "context.h"
#include "device.h"
#include "event.h"
#include "handle.h"
#include "import.h"
#include "link.h"
#include "state.h"
#include "stream.h"

/* For a test: with GPUSHARE_SIM_IPC_CODE, which is set when the first call comes, each call here
 * answers that, and does nothing; while it is empty it does not. */
static bool is_told(CUresult *code) {
    static atomic_int told = -1;
    if (told < 0)
        told = getenv("GPUSHARE_SIM_IPC_CODE") != NULL;
    const char *text = told ? getenv("GPUSHARE_SIM_IPC_CODE") : NULL;
    if (!text || !*text)
        return false;
    *code = (CUresult)atoi(text);
    return true;
}

#define TELL()                                                                                     \
    CUresult told;                                                                                 \
    if (is_told(&told))                                                                            \
    return told

static struct handle describe(const struct span *span) {
    const struct block *block = span->block;
    return (struct handle){.context = (uint64_t)(uintptr_t)block->context,
                           .pid = (uint32_t)getpid(),
                           .size = span->size,
                           .pages = (uint32_t)(block->size >> HANDLE_PAGE_SHIFT),
                           .offset = (uint32_t)(span->base - block->address),
                           .kind = {HANDLE_KIND, HANDLE_KIND_HIGH},
                           .counter = (uint32_t)block->serial,
                           .client = link_client(),
                           .memory = (uint32_t)(block->address >> SIM_BLOCK_SHIFT)};
}

static CUresult export(CUdeviceptr pointer, struct handle *handle) {
    struct span span;
    if (!block_find(pointer, &span) || span.block->kind != BLOCK_PLAIN)
        return CUDA_ERROR_INVALID_VALUE;
    if (!span.block->exported) {
        struct sim_request request = {.op = SIM_EXPORT, .a = span.block->id};
        TRY(link_call(&request, NULL));
        span.block->exported = true;
    }
    *handle = describe(&span);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr pointer) {
    TELL();
    struct handle handle;
    REFUSE(!out || !pointer, CUDA_ERROR_INVALID_VALUE);
    CURRENT(context);
    state_lock();
    CUresult result = export(pointer, &handle);
    state_unlock();
    if (!result)
        memcpy(out, &handle, sizeof handle);
    return result;
}

/* Opens and closes under way, by memory: several share a place. An open during another thread's
 * open or close of the same memory answers 208 on a card, three times in ten thousand. */
enum { PLACES = 64 };
static atomic_uint under_way[PLACES];

static atomic_uint *place_of(uint32_t client, uint32_t memory) {
    return &under_way[(client * 31 + memory) % PLACES];
}

static CUresult open_beside(CUcontext context, const struct handle *handle, CUdeviceptr *out) {
    atomic_uint *place = place_of(handle->client, handle->memory);
    CUresult result = CUDA_ERROR_ALREADY_MAPPED;
    if (atomic_fetch_add(place, 1) == 0 || !getenv("GPUSHARE_SIM_MAPPED")) {
        state_lock();
        result = import_open(context, handle, out);
        state_unlock();
    }
    atomic_fetch_sub(place, 1);
    return result;
}

static bool plausible(const struct handle *handle) {
    return handle->kind[0] == HANDLE_KIND && (handle->kind[1] & 0xff) == 0 && handle->pages;
}

CUresult CUDAAPI cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle bytes, unsigned int flags) {
    TELL();
    struct handle handle;
    memcpy(&handle, &bytes, sizeof handle);
    REFUSE(!out || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, CUDA_ERROR_INVALID_VALUE);
    CURRENT(context);
    REFUSE(!plausible(&handle), CUDA_ERROR_INVALID_VALUE);
    /* The real one knows its own handles by the pid alone, another container's 1 or not. */
    if (handle.client == link_client() || handle.pid == (uint32_t)getpid())
        return CUDA_ERROR_INVALID_CONTEXT;
    return open_beside(context, &handle, out);
}

CALL(cuIpcOpenMemHandle, (CUdeviceptr * out, CUipcMemHandle bytes, unsigned int flags),
     cuIpcOpenMemHandle_v2(out, bytes, flags))

CUresult CUDAAPI cuIpcCloseMemHandle(CUdeviceptr pointer) {
    TELL();
    CURRENT(context);
    state_lock();
    struct span span;
    bool found = block_find(pointer, &span) && span.block->kind == BLOCK_IMPORT;
    uint32_t card = found ? span.block->context->card : 0;
    atomic_uint *place = found ? place_of(span.block->owner, span.block->memory) : NULL;
    state_unlock();
    REFUSE(!found, CUDA_ERROR_INVALID_VALUE);
    atomic_fetch_add(place, 1);
    /* Like a free: whatever still uses the memory comes first. */
    stream_wait_card(card);
    state_lock();
    CUresult result = import_close(pointer);
    state_unlock();
    atomic_fetch_sub(place, 1);
    return result;
}

CUresult CUDAAPI cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event) {
    TELL();
    CURRENT(context);
    return event ? event_export(event, handle) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle handle) {
    TELL();
    CURRENT(context);
    REFUSE(!out, CUDA_ERROR_INVALID_VALUE);
    /* A card opens what is left of a creator that has ended, too. */
    CUresult result = event_import(context, &handle, out);
    return result == CUDA_ERROR_INVALID_HANDLE ? event_of_nobody(context, out) : result;
}
