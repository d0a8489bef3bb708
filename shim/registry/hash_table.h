/*
 * hash_table.h - configures uthash for the registry, and allocates its objects from slabs.
 *
 * By default uthash ends the process when memory runs out, and hashes keys byte by byte; both are
 * replaced here. Keys are 64-bit words (addresses) or begin with a 16-byte id, which is a hash.
 * The functions take no lock; the caller does. Nothing comes from malloc.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "table_memory.h"

static inline uint32_t gps_table_hash(const void *key, size_t size) {
    uint64_t word;
    memcpy(&word, key, sizeof(word));
    if (size ==
        sizeof(word)) /* addresses: aligned and close together, so the middle bits must mix */
        word = (word >> 8 ^ word << 56) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(word >> 26);
}

#define HASH_NONFATAL_OOM                1
#define uthash_malloc(size)              gps_table_allocate(size)
#define uthash_free(memory, size)        gps_table_free(memory, size)
#define HASH_FUNCTION(key, size, hashed) ((hashed) = gps_table_hash(key, size))
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include <uthash.h>
#pragma GCC diagnostic pop
/* Chains of up to 10, as uthash has them, are 10 cache misses an insert once tables are large: with
 * a million allocations 1.2 us, and a quarter of that with chains of 4, for 13 bytes more each. */
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_BKT_CAPACITY_THRESH 4U

/* A slab has objects of one size: a free list, and the unused rest of a chunk, which is never
 * touched before it is needed. Chunks are never unmapped. An empty slab is zero. The caller locks.
 */
struct gps_slab {
    void *free;
    char *next, *end;
};

static inline bool gps_slab_grow(struct gps_slab *slab) {
    const size_t chunk = 64 * 1024;
    char *bytes = mmap(NULL, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED)
        return false;
    slab->next = bytes;
    slab->end = bytes + chunk;
    return true;
}

static inline void *gps_slab_get(struct gps_slab *slab, size_t size) {
    void *object = slab->free;
    if (object) {
        slab->free = *(void **)object;
        return object;
    }
    if ((size_t)(slab->end - slab->next) < size && !gps_slab_grow(slab))
        return NULL;
    object = slab->next;
    slab->next += size;
    return object;
}

static inline void gps_slab_put(struct gps_slab *slab, void *object) {
    *(void **)object = slab->free;
    slab->free = object;
}
