/* allocations.c - allocations: 64 tables by address. See registry.h. */
#include "registry.h"

#include <sys/mman.h>

#include "freed_history.h"
#include "hash_table.h"
#include "util/forgotten.h"
#include "util/lock.h"

enum {
    SHARDS = 64,
    BLOCK_BITS = 21, /* 2 MiB: the driver cuts small ones from such blocks */
    MARKS = 256,
};

struct node {
    struct gps_entry entry; /* by its pointer */
    struct gps_alloc alloc;
};

static struct shard {
    GPS_LOCK(GPS_RANK_ALLOCATIONS) lock;
    struct gps_table table;
    struct gps_slab slab;
} shards[SHARDS];
GPS_FORGOTTEN(shards);

static struct {
    _Atomic uint32_t era;
    /* Addresses that were found to have a region, read without a lock; a newer one may replace an
     * older. Each is set and cleared with the lock of its shard. */
    _Atomic uint64_t exported[MARKS];
} state;
GPS_FORGOTTEN(state);

/* The shard follows from the block, so that the neighbours of an allocation are in its shard. */
static struct shard *shard_of(uint64_t pointer) {
    return &shards[(pointer >> BLOCK_BITS) * 0x9e3779b97f4a7c15u >> 58];
}
_Static_assert(SHARDS == 1 << 6, "6 bits of the hash");

static _Atomic uint64_t *allocation_mark(uint64_t pointer) {
    return &state.exported[(pointer >> 8 ^ pointer << 56) * 0x9e3779b97f4a7c15u >> 56];
}
_Static_assert(MARKS == 1 << 8, "8 bits of the hash");

/* Called before the allocation is removed, since the driver may reuse its address then. */
static void allocation_unmark(const struct gps_alloc *alloc) {
    uint64_t expected = alloc->pointer;
    if (alloc->kind == GPS_ALLOC_EXPORTED)
        atomic_compare_exchange_strong(allocation_mark(alloc->pointer), &expected, 0);
}

static struct node *allocation_find(struct shard *shard, uint64_t pointer) {
    return GPS_ENTRY_OF(struct node, entry, gps_table_find(&shard->table, pointer));
}

struct gps_export *gps_registry_add(const struct gps_alloc *alloc) {
    gps_freed_forget(GPS_FREED_MEMORY, alloc->pointer);
    struct shard *shard = shard_of(alloc->pointer);
    GPS_LOCKED(&shard->lock);
    struct node *node = allocation_find(shard, alloc->pointer);
    struct gps_export *lost = node ? node->alloc.region : NULL;
    if (node)
        allocation_unmark(&node->alloc);
    else
        node = gps_table_make(&shard->table, &shard->slab, sizeof(*node), alloc->pointer);
    if (node)
        node->alloc = *alloc;
    return lost;
}

static void allocation_drop(struct shard *shard, struct node *node) {
    allocation_unmark(&node->alloc);
    gps_table_drop(&shard->table, &shard->slab, &node->entry);
}

bool gps_registry_take(uint64_t pointer, struct gps_alloc *alloc) {
    struct shard *shard = shard_of(pointer);
    GPS_LOCKED(&shard->lock);
    struct node *node = allocation_find(shard, pointer);
    if (node) {
        *alloc = node->alloc;
        allocation_drop(shard, node);
    }
    return node != NULL;
}

bool gps_registry_find(uint64_t pointer, struct gps_alloc *alloc) {
    struct shard *shard = shard_of(pointer);
    GPS_LOCKED(&shard->lock);
    const struct node *node = allocation_find(shard, pointer);
    if (node)
        *alloc = node->alloc;
    if (node && alloc->kind == GPS_ALLOC_EXPORTED)
        atomic_store(allocation_mark(pointer), pointer);
    return node != NULL;
}

bool gps_registry_attach(uint64_t pointer, struct gps_export *region) {
    struct shard *shard = shard_of(pointer);
    GPS_LOCKED(&shard->lock);
    struct node *node = allocation_find(shard, pointer);
    const bool attached = node && node->alloc.kind == GPS_ALLOC_PLAIN;
    if (attached) {
        node->alloc.kind = GPS_ALLOC_EXPORTED;
        node->alloc.region = region;
    }
    return attached;
}

bool gps_registry_is_exported(uint64_t pointer) {
    return pointer &&
           atomic_load_explicit(allocation_mark(pointer), memory_order_relaxed) == pointer;
}

unsigned gps_registry_neighbours(uint64_t pointer, struct gps_alloc *one) {
    struct shard *shard = shard_of(pointer);
    unsigned count = 0;
    GPS_LOCKED(&shard->lock);
    GPS_TABLE_EACH(node, node, &shard->table) {
        if (node->alloc.pointer >> BLOCK_BITS == pointer >> BLOCK_BITS &&
            node->alloc.pointer != pointer && !count++)
            *one = node->alloc;
    }
    return count;
}

static uint64_t allocation_distance(const struct gps_alloc *alloc, uint64_t address) {
    return address < alloc->pointer                 ? alloc->pointer - address
           : address - alloc->pointer < alloc->size ? UINT64_MAX
                                                    : address - alloc->pointer - alloc->size;
}

bool gps_registry_nearest(uint64_t address, struct gps_alloc *nearest, uint64_t *behind,
                          uint64_t *before) {
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < SHARDS; i++) {
        GPS_LOCKED(&shards[i].lock);
        GPS_TABLE_EACH(node, node, &shards[i].table) {
            const uint64_t bytes = allocation_distance(&node->alloc, address);
            if (bytes < least)
                *nearest = node->alloc;
            least = bytes < least ? bytes : least;
        }
    }
    const bool below = least != UINT64_MAX && address < nearest->pointer;
    *before = below ? least : 0;
    *behind = below ? 0 : least;
    return least != UINT64_MAX;
}

uint32_t gps_registry_era(void) {
    return atomic_load_explicit(&state.era, memory_order_relaxed);
}

uint32_t gps_registry_begin_era(void) {
    return atomic_fetch_add(&state.era, 1) + 1;
}

struct match {
    uint64_t context; /* 0: any */
    uint32_t era;
    bool exports; /* only exported allocations, of any era */
    bool (*wanted)(const struct gps_export *region);
};

static bool allocation_matches(const struct match *match, const struct gps_alloc *alloc) {
    if (match->context && alloc->context != match->context)
        return false;
    if (!match->exports)
        return (int32_t)(alloc->era - match->era) < 0;
    return alloc->region && (!match->wanted || match->wanted(alloc->region));
}

static void take_all(const struct match *match, void (*fn)(void *arg, struct gps_alloc *alloc),
                     void *arg) {
    for (size_t i = 0; i < SHARDS; i++) {
        struct shard *shard = &shards[i];
        GPS_LOCKED(&shard->lock);
        GPS_TABLE_EACH(node, node, &shard->table) {
            struct gps_alloc alloc = node->alloc;
            if (!allocation_matches(match, &alloc))
                continue;
            allocation_drop(shard, node);
            fn(arg, &alloc);
        }
    }
}

void gps_registry_purge(uint64_t context, uint32_t era,
                        void (*fn)(void *arg, struct gps_alloc *alloc), void *arg) {
    take_all(&(struct match){.context = context, .era = era}, fn, arg);
}

void gps_registry_take_exports(uint64_t context, bool (*wanted)(const struct gps_export *region),
                               void (*fn)(void *arg, struct gps_alloc *alloc), void *arg) {
    take_all(&(struct match){.context = context, .exports = true, .wanted = wanted}, fn, arg);
}

unsigned gps_registry_take_plain(struct gps_alloc *taken, unsigned max) {
    unsigned count = 0;
    for (size_t i = 0; i < SHARDS && count < max; i++) {
        struct shard *shard = &shards[i];
        GPS_LOCKED(&shard->lock);
        GPS_TABLE_EACH(node, node, &shard->table) {
            if (count == max || node->alloc.kind != GPS_ALLOC_PLAIN)
                continue;
            taken[count++] = node->alloc;
            allocation_drop(shard, node);
        }
    }
    return count;
}

void gps_registry_each_export(uint64_t context, void (*fn)(void *arg, struct gps_export *region),
                              void *arg) {
    const struct match match = {.context = context, .exports = true};
    for (size_t i = 0; i < SHARDS; i++) {
        GPS_LOCKED(&shards[i].lock);
        GPS_TABLE_EACH(node, node, &shards[i].table) {
            if (allocation_matches(&match, &node->alloc))
                fn(arg, node->alloc.region);
        }
    }
}

bool gps_alloc_is_drivers(const struct gps_alloc *alloc) {
    return alloc->kind == GPS_ALLOC_PLAIN ||
           (alloc->kind == GPS_ALLOC_EXPORTED && !alloc->region->vmm);
}

/* A bit for each block of the addresses that a GPU has; only touched pages take memory. */
enum { ADDRESS_BITS = 49 };
#define BLOCK_BYTES (UINT64_C(1) << BLOCK_BITS)
#define MAP_BYTES   (UINT64_C(1) << (ADDRESS_BITS - BLOCK_BITS - 3))

static uint8_t *new_block_map(void) {
    void *map = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return map == MAP_FAILED ? NULL : map;
}

/* Small allocations of one block count once. Without a map each counts as a block. */
static uint64_t blocks_of(const struct gps_alloc *alloc, uint8_t *map) {
    const uint64_t block = alloc->pointer >> BLOCK_BITS, byte = block / 8;
    if (alloc->size >= BLOCK_BYTES || !map || byte >= MAP_BYTES)
        return (alloc->size + BLOCK_BYTES - 1) / BLOCK_BYTES;
    const uint8_t bit = (uint8_t)(1u << block % 8);
    const bool counted = map[byte] & bit;
    map[byte] |= bit;
    return !counted;
}

uint64_t gps_registry_bytes(void) {
    uint64_t blocks = 0;
    uint8_t *const map = new_block_map();
    for (size_t i = 0; i < SHARDS; i++) {
        GPS_LOCKED(&shards[i].lock);
        GPS_TABLE_EACH(node, node, &shards[i].table) {
            blocks += gps_alloc_is_drivers(&node->alloc) ? blocks_of(&node->alloc, map) : 0;
        }
    }
    if (map)
        munmap(map, MAP_BYTES);
    return blocks * BLOCK_BYTES;
}

void gps_registry_move(uint64_t context, uint64_t to) {
    for (size_t i = 0; i < SHARDS; i++) {
        GPS_LOCKED(&shards[i].lock);
        GPS_TABLE_EACH(node, node, &shards[i].table) {
            if (node->alloc.context == context)
                node->alloc.context = to;
        }
    }
}
