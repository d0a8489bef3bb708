/*
 * The device memory that this process holds: blocks, each its own allocation, a block shared by
 * small allocations, or one opened from another process. All of it belongs to a context and ends
 * with it; but for VMM memory, which as a block is one mapping (see mapping.h) and has no context.
 * Under the state lock.
 */
#pragma once

#include "abi.h"

enum block_kind {
    BLOCK_PLAIN,
    BLOCK_POOL,
    BLOCK_POOL_IMPORT, /* a pointer of another process's pool */
    BLOCK_EXTERNAL,    /* a buffer of external memory */
    BLOCK_IMPORT,
    BLOCK_MAPPED,
    BLOCK_OWN_KINDS = BLOCK_IMPORT, /* those that cuMemFree frees */
};

struct mapping;
struct physical;
struct pool;
struct small;
struct opening;

struct block {
    uint64_t id; /* the daemon's */
    uint64_t address, size, offset;
    uint64_t requested; /* 0 where small allocations or openings share it */
    uint64_t serial;
    uint32_t card;
    enum block_kind kind;
    bool exported;
    bool sync; /* SYNC_MEMOPS was set */
    CUcontext context;
    struct pool *pool;         /* of the program's own; NULL: the card's, or none */
    struct mapping *mapping;   /* of VMM memory */
    struct physical *external; /* of a buffer: its memory; `skip` bytes behind the block's begin */
    uint64_t skip;
    struct small *small;
    struct opening *openings;           /* of an import */
    uint32_t owner, memory, counter;    /* of an import: what its handle says */
    struct block *next, *prev;          /* of its context */
    struct block *roomier, *less_roomy; /* shared blocks of a context that have room */
};

/* What a context owns. */
struct block_set {
    struct block *first;
    struct block *roomy[BLOCK_OWN_KINDS];
};

/* One allocation, or one opened handle, as the program knows it. */
struct span {
    uint64_t base, size;
    struct block *block;
};

/* All CUresult; outputs only on success. */
CUresult block_allocate(CUcontext context, enum block_kind kind, uint64_t size, CUdeviceptr *out);
/* Memory of a pool of the program's own is whole blocks. */
CUresult block_allocate_from(CUcontext context, struct pool *pool, uint64_t size, CUdeviceptr *out);
CUresult block_free(CUdeviceptr base);
/* Whether block_free would free it. */
bool block_may_free(CUdeviceptr base);
bool block_find(uint64_t address, struct span *span);
/* The bytes that the context has for memory of pools. */
uint64_t block_pool(CUcontext context);
/* Brings a block under its context, and lets it go, also at the daemon. */
void block_link(struct block *block);
void block_drop(struct block *block, bool retire);
/* All that a context has. */
void block_drop_all(CUcontext context);
