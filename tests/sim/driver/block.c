/* The device memory that this process holds; see block.h. */
#include "block.h"

#include "context.h"
#include "import.h"
#include "link.h"
#include "physical.h"
#include "small.h"
#include "space.h"
#include "state.h"

static struct block_set *set_of(const struct block *block) {
    return &block->context->blocks;
}

static void roomy_remove(struct block *block) {
    struct block **head = &set_of(block)->roomy[block->kind];
    if (block->roomier)
        block->roomier->less_roomy = block->less_roomy;
    else if (*head == block)
        *head = block->less_roomy;
    if (block->less_roomy)
        block->less_roomy->roomier = block->roomier;
    block->roomier = block->less_roomy = NULL;
}

/* To the front: what was freed last is allocated first. */
static void roomy_add(struct block *block) {
    struct block **head = &set_of(block)->roomy[block->kind];
    roomy_remove(block);
    block->less_roomy = *head;
    if (*head)
        (*head)->roomier = block;
    *head = block;
}

void block_link(struct block *block) {
    struct block_set *set = set_of(block);
    block->prev = NULL;
    block->next = set->first;
    if (set->first)
        set->first->prev = block;
    set->first = block;
}

static void let_go(struct block *block) {
    const bool opened = block->kind == BLOCK_IMPORT || block->kind == BLOCK_POOL_IMPORT;
    const struct sim_request request = {.op = opened ? SIM_CLOSE : SIM_FREE, .a = block->id};
    if (!block->external) {
        link_call(&request, NULL);
        return;
    }
    block->external->mappings--;
    physical_release_unused(block->external);
}

void block_drop(struct block *block, bool retire) {
    let_go(block);
    if (block->small) {
        roomy_remove(block);
        small_destroy(block->small);
    }
    if (block->prev)
        block->prev->next = block->next;
    else
        set_of(block)->first = block->next;
    if (block->next)
        block->next->prev = block->prev;
    if (retire)
        space_retire(block->address, block->size);
    else
        space_give(block->address, block->size);
    import_forget(block);
    free(block);
}

void block_drop_all(CUcontext context) {
    while (context->blocks.first)
        block_drop(context->blocks.first, context->blocks.first->kind == BLOCK_IMPORT);
}

static CUresult create(CUcontext context, enum block_kind kind, uint64_t size, struct block **out) {
    struct sim_reply reply;
    struct block *block = calloc(1, sizeof *block);
    uint64_t whole = (size + SIM_BLOCK - 1) & ~(SIM_BLOCK - 1);
    REFUSE(!block, CUDA_ERROR_OUT_OF_MEMORY);
    block->address = space_take(whole, 0, block);
    if (!block->address) {
        free(block);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct sim_request request = {
        .op = SIM_ALLOC, .device = context->card, .a = whole, .b = block->address};
    CUresult result = link_call(&request, &reply);
    if (result) {
        space_give(block->address, whole);
        free(block);
        return result;
    }
    block->id = reply.a;
    block->offset = reply.b;
    block->size = reply.c;
    block->serial = state_serial();
    block->card = context->card;
    block->kind = kind;
    block->context = context;
    block_link(block);
    *out = block;
    return CUDA_SUCCESS;
}

static CUresult allocate_small(CUcontext context, enum block_kind kind, uint64_t size,
                               CUdeviceptr *out) {
    uint64_t offset;
    struct block *block = context->blocks.roomy[kind];
    while (block && !small_take(block->small, size, &offset))
        block = block->less_roomy;
    if (!block) {
        TRY(create(context, kind, SIM_BLOCK, &block));
        block->small = small_create();
        if (!block->small || !small_take(block->small, size, &offset)) {
            block_drop(block, false);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        roomy_add(block);
    }
    if (!small_room(block->small))
        roomy_remove(block);
    *out = block->address + offset;
    return CUDA_SUCCESS;
}

CUresult block_allocate(CUcontext context, enum block_kind kind, uint64_t size, CUdeviceptr *out) {
    struct block *block;
    /* Before the search for addresses, which would have to reserve them. */
    REFUSE(size > link_memory(), CUDA_ERROR_OUT_OF_MEMORY);
    if (size <= SMALL_MOST)
        return allocate_small(context, kind, size, out);
    TRY(create(context, kind, size, &block));
    block->requested = size;
    *out = block->address;
    return CUDA_SUCCESS;
}

CUresult block_allocate_from(CUcontext context, struct pool *pool, uint64_t size,
                             CUdeviceptr *out) {
    struct block *block;
    TRY(size > link_memory() ? CUDA_ERROR_OUT_OF_MEMORY
                             : create(context, BLOCK_POOL, size, &block));
    block->requested = size;
    block->pool = pool;
    *out = block->address;
    return CUDA_SUCCESS;
}

bool block_may_free(CUdeviceptr base) {
    struct span span;
    return block_find(base, &span) && span.base == base && span.block->kind < BLOCK_OWN_KINDS;
}

CUresult block_free(CUdeviceptr base) {
    REFUSE(!block_may_free(base), CUDA_ERROR_INVALID_VALUE);
    struct block *block = space_block(base);
    if (block->small) {
        small_give(block->small, base - block->address);
        if (small_live(block->small)) {
            roomy_add(block);
            return CUDA_SUCCESS;
        }
    }
    block_drop(block, false);
    return CUDA_SUCCESS;
}

uint64_t block_pool(CUcontext context) {
    uint64_t bytes = 0;
    for (const struct block *block = context->blocks.first; block; block = block->next)
        if (block->kind == BLOCK_POOL)
            bytes += block->size;
    return bytes;
}

bool block_find(uint64_t address, struct span *span) {
    struct block *block = space_block(address);
    uint64_t offset, size;
    if (!block)
        return false;
    offset = block->skip;
    size = block->requested;
    if (block->small && !small_find(block->small, address - block->address, &offset, &size))
        return false;
    if (block->kind == BLOCK_IMPORT &&
        !import_find(block, address - block->address, &offset, &size))
        return false;
    *span = (struct span){block->address + offset, size, block};
    return address - span->base < size; /* also of an address before it */
}
