/*
 * hash_table.h - hash tables of the registry, and slabs for their objects.
 *
 * An object has an entry for each table that it is in. A table allocates nothing but its buckets,
 * and without memory for more of them its chains get longer, so adding never fails. The functions
 * take no lock; the caller does. Nothing comes from malloc: objects come and go on the way from
 * _exit, too, where another thread, or a handler's victim, may hold malloc's lock for ever.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

static inline void *gps_table_map(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* --- tables; an empty one is zero --- */

struct gps_entry {
    struct gps_entry *next; /* in its chain */
    uint64_t key;           /* an address, or a hash */
};

enum { GPS_FIRST_BITS = 4, GPS_PAGE_BITS = 9, GPS_GROW_BITS = 3 };

struct gps_table {
    struct gps_entry *first[1 << GPS_FIRST_BITS]; /* its buckets until it grows */
    struct gps_entry **grown;                     /* then these */
    unsigned more;                                /* bits beyond the first ones */
    unsigned count;
};

/* The object that has this entry, or NULL. */
#define GPS_ENTRY_OF(type, member, entry)                                                          \
    ((type *)gps_entry_object((entry), offsetof(type, member)))
static inline void *gps_entry_object(struct gps_entry *entry, size_t offset) {
    return entry ? (char *)entry - offset : NULL;
}

static inline size_t gps_table_size(const struct gps_table *table) {
    return (size_t)1 << (GPS_FIRST_BITS + table->more);
}

/* Addresses are aligned and close together, so the middle bits must mix. */
static inline size_t gps_table_place(const struct gps_table *table, uint64_t key) {
    return (size_t)((key >> 8 ^ key << 56) * 0x9e3779b97f4a7c15u >>
                    (64 - GPS_FIRST_BITS - table->more));
}

static inline struct gps_entry **gps_table_bucket(struct gps_table *table, size_t place) {
    return (table->grown ? table->grown : table->first) + place;
}

/* The first entry of this key in the rest of a chain. */
static inline struct gps_entry *gps_entry_find(struct gps_entry *entry, uint64_t key) {
    while (entry && entry->key != key)
        entry = entry->next;
    return entry;
}

static inline struct gps_entry *gps_table_find(struct gps_table *table, uint64_t key) {
    return gps_entry_find(*gps_table_bucket(table, gps_table_place(table, key)), key);
}

/* The next entry in no order; NULL: the first one. */
static inline struct gps_entry *gps_table_next(struct gps_table *table, struct gps_entry *entry) {
    size_t place = entry ? gps_table_place(table, entry->key) + 1 : 0;
    entry = entry ? entry->next : NULL;
    for (; !entry && place < gps_table_size(table); place++)
        entry = *gps_table_bucket(table, place);
    return entry;
}

static inline void gps_table_link(struct gps_table *table, struct gps_entry *entry) {
    struct gps_entry **bucket = gps_table_bucket(table, gps_table_place(table, entry->key));
    entry->next = *bucket;
    *bucket = entry;
}

/* Chains of two entries on average, since each entry is a cache miss where tables are large. */
__attribute__((noinline, unused)) static void gps_table_grow(struct gps_table *table) {
    struct gps_table old = *table;
    const unsigned more = old.more ? old.more + GPS_GROW_BITS : GPS_PAGE_BITS - GPS_FIRST_BITS;
    struct gps_entry **grown = gps_table_map(sizeof(*grown) << (GPS_FIRST_BITS + more));
    if (!grown)
        return;
    table->grown = grown;
    table->more = more;
    for (size_t place = 0; place < gps_table_size(&old); place++) {
        struct gps_entry *entry = *gps_table_bucket(&old, place), *next;
        for (; entry; entry = next) {
            next = entry->next;
            gps_table_link(table, entry);
        }
    }
    if (old.grown)
        munmap(old.grown, sizeof(*grown) * gps_table_size(&old));
}

static inline void gps_table_add(struct gps_table *table, struct gps_entry *entry, uint64_t key) {
    if (table->count >> 1 >= gps_table_size(table))
        gps_table_grow(table);
    entry->key = key;
    gps_table_link(table, entry);
    table->count++;
}

static inline void gps_table_remove(struct gps_table *table, struct gps_entry *entry) {
    struct gps_entry **link = gps_table_bucket(table, gps_table_place(table, entry->key));
    while (*link != entry)
        link = &(*link)->next;
    *link = entry->next;
    table->count--;
}

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
    char *bytes = gps_table_map(chunk);
    if (!bytes)
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
