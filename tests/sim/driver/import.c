/* Memory of other processes that is open here; see import.h. */
#include "import.h"

#include "block.h"
#include "context.h"
#include "device.h"
#include "link.h"
#include "space.h"
#include "state.h"

struct opening {
    uint64_t offset, size, count;
    struct opening *next;
};

static bool same_memory(const struct block *block, const struct handle *handle) {
    return block->owner == handle->client && block->memory == handle->memory &&
           block->counter == handle->counter;
}

/* The import on this card, in whatever context, that a handle or the daemon's id names. */
static struct block *find(uint32_t card, const struct handle *handle, uint64_t id) {
    for (CUcontext context = context_first(); context; context = context->next)
        for (struct block *b = context->card == card ? context->blocks.first : NULL; b; b = b->next)
            if (b->kind == BLOCK_IMPORT && (handle ? same_memory(b, handle) : b->id == id))
                return b;
    return NULL;
}

/* Memory of one exporter is open in one context of a card. */
static bool is_open_elsewhere(CUcontext context, const struct handle *handle) {
    for (CUcontext other = context_first(); other; other = other->next)
        for (struct block *b =
                 other != context && other->card == context->card ? other->blocks.first : NULL;
             b; b = b->next)
            if (b->kind == BLOCK_IMPORT && b->owner == handle->client)
                return true;
    return false;
}

static CUresult map(CUcontext context, const struct handle *handle, const struct sim_reply *reply,
                    struct block **out) {
    struct block *block = calloc(1, sizeof *block);
    uint64_t exporters = (uint64_t)handle->memory << SIM_BLOCK_SHIFT;
    REFUSE(!block, CUDA_ERROR_OUT_OF_MEMORY);
    block->address = space_take(reply->c, exporters, block);
    if (!block->address) {
        free(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    block->id = reply->a;
    block->offset = reply->b;
    block->size = reply->c;
    block->card = reply->device;
    block->serial = state_serial();
    block->kind = BLOCK_IMPORT;
    block->context = context;
    block->owner = handle->client;
    block->memory = handle->memory;
    block->counter = handle->counter;
    block_link(block);
    *out = block;
    return CUDA_SUCCESS;
}

static void close_at_daemon(uint64_t id) {
    struct sim_request request = {.op = SIM_CLOSE, .a = id};
    link_call(&request, NULL);
}

static CUresult ask_daemon(CUcontext context, const struct handle *handle, struct block **out) {
    struct sim_request request = {
        .op = SIM_OPEN, .a = handle->client, .b = (uint64_t)handle->memory << SIM_BLOCK_SHIFT};
    struct sim_reply reply;
    TRY(link_call(&request, &reply));
    CUresult result = CUDA_SUCCESS;
    if (handle->pages > reply.c >> HANDLE_PAGE_SHIFT)
        result = CUDA_ERROR_INVALID_VALUE;
    else if (!device_reaches(context->card, reply.device))
        result = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (result) {
        close_at_daemon(reply.a);
        return result;
    }
    /* Open already, under a handle that differs in what does not matter: held once is enough. */
    *out = find(context->card, NULL, reply.a);
    if (*out) {
        close_at_daemon(reply.a);
        return CUDA_SUCCESS;
    }
    result = map(context, handle, &reply, out);
    if (result)
        close_at_daemon(reply.a);
    return result;
}

static bool overlap(const struct opening *opening, const struct handle *handle) {
    return opening->offset < handle->offset + handle->size &&
           handle->offset < opening->offset + opening->size;
}

/* What lay in a place earlier and is still open keeps out what lies there now. */
static CUresult add_opening(struct block *block, const struct handle *handle) {
    struct opening *opening = block->openings;
    while (opening && !overlap(opening, handle))
        opening = opening->next;
    if (opening && (opening->offset != handle->offset || opening->size != handle->size))
        return CUDA_ERROR_ALREADY_MAPPED;
    if (!opening) {
        opening = calloc(1, sizeof *opening);
        REFUSE(!opening, CUDA_ERROR_OUT_OF_MEMORY);
        opening->offset = handle->offset;
        opening->size = handle->size;
        opening->next = block->openings;
        block->openings = opening;
    }
    opening->count++;
    return CUDA_SUCCESS;
}

CUresult import_open(CUcontext context, const struct handle *handle, CUdeviceptr *out) {
    REFUSE(is_open_elsewhere(context, handle), CUDA_ERROR_INVALID_HANDLE);
    struct block *block = find(context->card, handle, 0);
    TRY(block ? CUDA_SUCCESS : ask_daemon(context, handle, &block));
    CUresult result = CUDA_SUCCESS;
    if (handle->size > block->size || handle->offset > block->size - handle->size)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        result = add_opening(block, handle);
    if (result && !block->openings)
        block_drop(block, false);
    else if (!result)
        *out = block->address + handle->offset;
    return result;
}

CUresult import_attach(CUcontext context, uint64_t id, const struct handle *handle,
                       CUdeviceptr *out) {
    struct sim_request request = {.op = SIM_ATTACH, .a = id};
    struct sim_reply reply;
    struct block *block;
    TRY(link_call(&request, &reply));
    CUresult result = CUDA_SUCCESS;
    if (!device_reaches(context->card, reply.device))
        result = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (!result)
        result = map(context, handle, &reply, &block);
    if (result) {
        close_at_daemon(id);
        return result;
    }
    result = add_opening(block, handle);
    if (result)
        block_drop(block, false);
    else
        *out = block->address + handle->offset;
    return result;
}

CUresult import_close(CUdeviceptr base) {
    struct block *block = space_block(base);
    REFUSE(!block || block->kind != BLOCK_IMPORT, CUDA_ERROR_INVALID_VALUE);
    struct opening **link = &block->openings;
    while (*link && (*link)->offset != base - block->address)
        link = &(*link)->next;
    struct opening *opening = *link;
    REFUSE(!opening, CUDA_ERROR_INVALID_VALUE);
    if (--opening->count)
        return CUDA_SUCCESS;
    *link = opening->next;
    free(opening);
    if (!block->openings)
        block_drop(block, false);
    return CUDA_SUCCESS;
}

bool import_find(const struct block *block, uint64_t at, uint64_t *offset, uint64_t *size) {
    const struct opening *best = NULL;
    for (const struct opening *o = block->openings; o; o = o->next)
        if (at >= o->offset && at - o->offset < o->size && (!best || o->offset > best->offset))
            best = o;
    if (!best)
        return false;
    *offset = best->offset;
    *size = best->size;
    return true;
}

void import_forget(struct block *block) {
    while (block->openings) {
        struct opening *opening = block->openings;
        block->openings = opening->next;
        free(opening);
    }
}
