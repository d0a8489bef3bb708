/*
 * hash_table.h - hash tables of the registry, by uthash, and slabs for their objects.
 *
 * An object has an entry for each table that it is in. By default uthash ends the process when
 * memory runs out, and hashes keys byte by byte; both are replaced here. The functions take no
 * lock; the caller does. Nothing comes from malloc: objects come and go on the way from _exit, too,
 * where another thread, or code that a signal handler interrupted, may hold malloc's lock for ever.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* Memory for uthash's own tables. Freed pieces are kept by size for the next table. Any thread.
 * Returns NULL where there is none. */
void *gps_table_allocate(size_t size);
void gps_table_free(void *memory, size_t size);

/* Addresses are aligned and close together, so the middle bits must mix. */
static inline uint32_t gps_table_hash(const void *key) {
    uint64_t word;
    memcpy(&word, key, sizeof(word));
    return (uint32_t)((word >> 8 ^ word << 56) * 0x9e3779b97f4a7c15u >> 26);
}

#define HASH_NONFATAL_OOM                1
#define uthash_malloc(size)              gps_table_allocate(size)
#define uthash_free(memory, size)        gps_table_free(memory, size)
#define HASH_FUNCTION(key, size, hashed) ((hashed) = gps_table_hash(key))
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include <uthash.h>
#pragma GCC diagnostic pop
/* Chains of up to 10, as uthash has them, are 10 cache misses an insert once tables are large: with
 * a million allocations 1.2 us, and a quarter of that with chains of 4, for 13 bytes more each. */
#undef HASH_BKT_CAPACITY_THRESH
#define HASH_BKT_CAPACITY_THRESH 4U

/* --- tables; an empty one is zero --- */

struct gps_entry {
    UT_hash_handle hh;
    uint64_t key; /* an address, or a hash; not 0 */
};

/* The anchor has the key 0 and is never removed, so an empty table keeps its buckets. */
struct gps_table {
    struct gps_entry *head, anchor;
};

/* The object that has this entry, or NULL. */
#define GPS_ENTRY_OF(type, member, entry)                                                          \
    ((type *)gps_entry_object((entry), offsetof(type, member)))
static inline void *gps_entry_object(struct gps_entry *entry, size_t offset) {
    return entry ? (char *)entry - offset : NULL;
}

static inline struct gps_entry *gps_table_find(struct gps_table *table, uint64_t key) {
    struct gps_entry *entry;
    HASH_FIND(hh, table->head, &key, sizeof(key), entry);
    return entry == &table->anchor ? NULL : entry;
}

/* The next entry of the same key. */
static inline struct gps_entry *gps_entry_find(const struct gps_entry *entry) {
    const UT_hash_handle *next = entry->hh.hh_next;
    while (next && *(const uint64_t *)next->key != entry->key)
        next = next->hh_next;
    return next ? ELMT_FROM_HH(entry->hh.tbl, next) : NULL;
}

/* The next entry in no order; NULL: the first one. */
static inline struct gps_entry *gps_table_next(const struct gps_table *table,
                                               const struct gps_entry *entry) {
    entry = entry ? entry : table->head;
    return entry ? entry->hh.next : NULL;
}

/* False: there is no memory for the table. */
static inline bool gps_table_add(struct gps_table *table, struct gps_entry *entry, uint64_t key) {
    if (!table->head)
        HASH_ADD(hh, table->head, key, sizeof(key), &table->anchor);
    if (!table->head)
        return false;
    entry->key = key;
    HASH_ADD(hh, table->head, key, sizeof(key), entry);
    return entry->hh.tbl != NULL;
}

static inline void gps_table_remove(struct gps_table *table, struct gps_entry *entry) {
    HASH_DELETE(hh, table->head, entry);
}

/* Whether an object was found; then *to is a copy of what it has. */
#define GPS_GIVE(found, member, to)                                                                \
    ({                                                                                             \
        const __typeof__(found) object_ = (found);                                                 \
        if (object_)                                                                               \
            *(to) = object_->member;                                                               \
        object_ != NULL;                                                                           \
    })

/* --- slabs --- */

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

/* --- objects that begin with their only entry --- */

/* A new object, in the table. NULL: there is no memory for it. */
static inline void *gps_table_make(struct gps_table *table, struct gps_slab *slab, size_t size,
                                   uint64_t key) {
    struct gps_entry *made = gps_slab_get(slab, size);
    if (!made || gps_table_add(table, made, key))
        return made;
    gps_slab_put(slab, made);
    return NULL;
}

static inline void gps_table_drop(struct gps_table *table, struct gps_slab *slab,
                                  struct gps_entry *entry) {
    gps_table_remove(table, entry);
    gps_slab_put(slab, entry);
}

/* Each object, in no order. The body may drop it. */
#define GPS_TABLE_EACH(type, one, table)                                                           \
    for (struct type *one = (struct type *)gps_table_next(table, NULL), *after;                    \
         one && (after = (struct type *)gps_table_next(table, (struct gps_entry *)one), true);     \
         one = after)
/* The first object for which the condition holds, in which it is `one`; or NULL. */
#define GPS_TABLE_SEEK(type, table, condition)                                                     \
    ({                                                                                             \
        struct type *one = (struct type *)gps_table_next(table, NULL);                             \
        while (one && !(condition))                                                                \
            one = (struct type *)gps_table_next(table, (struct gps_entry *)one);                   \
        one;                                                                                       \
    })
