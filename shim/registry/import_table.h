/*
 * import_table.h - the table of imports: a node each, by address, by (region, context), and in a
 * list those that are cached, or whose mapping is being ended. For imports.c and cached_imports.c
 * alone.
 *
 * The functions want the lock.
 */
#pragma once

#define NDEBUG /* the lists assert, which prints and ends the program */
#include <utlist.h>

#include "hash_table.h"
#include "registry.h"
#include "util/lock.h"

struct key {
    struct gps_id region;
    uint64_t context;
};

struct node {
    struct gps_import import;
    struct key key;
    UT_hash_handle by_pointer, by_region;
    bool cached;              /* then its count is 0 */
    struct node *prev, *next; /* in a list: of cached ones, oldest first, or of what is ending */
};

struct import_table {
    GPS_LOCK(GPS_RANK_IMPORTS) lock;
    struct node *by_pointer, *by_region, *cached, *ending;
    struct node anchor; /* the first entry of both, as in allocations.c */
    struct gps_cached sum;
    _Atomic uint64_t lowest, highest; /* cached ones lie between: only more, until there is none */
    struct gps_slab slab;
};
extern struct import_table gps_imports;

/* The end of a look-up. */
static inline bool unlocked(bool answer) {
    gps_lock_give(&gps_imports.lock);
    return answer;
}

static inline struct node *at(uint64_t pointer) {
    struct node *node;
    HASH_FIND(by_pointer, gps_imports.by_pointer, &pointer, sizeof(pointer), node);
    return node == &gps_imports.anchor ? NULL : node;
}

static inline struct node *of(const struct gps_id *region, uint64_t context) {
    const struct key key = {*region, context};
    struct node *node;
    HASH_FIND(by_region, gps_imports.by_region, &key, sizeof(key), node);
    return node == &gps_imports.anchor ? NULL : node;
}

static inline struct node *first(void) {
    return gps_imports.by_pointer ? gps_imports.by_pointer->by_pointer.next : NULL;
}

static inline void uncache(struct node *node) {
    DL_DELETE(gps_imports.cached, node);
    gps_imports.sum.count--;
    gps_imports.sum.bytes -= node->import.size;
    node->cached = false;
    if (gps_imports.sum.count == 0)
        gps_imports.highest = 0;
}

static inline void unlink_node(struct node *node) {
    if (node->cached)
        uncache(node);
    if (node->by_pointer.tbl)
        HASH_DELETE(by_pointer, gps_imports.by_pointer, node);
    if (node->by_region.tbl)
        HASH_DELETE(by_region, gps_imports.by_region, node);
}

static inline void drop(struct node *node) {
    unlink_node(node);
    gps_slab_put(&gps_imports.slab, node);
}

/* Closed by the program, and taken: the driver may not have closed it yet. */
static inline struct node *ending_at(uint64_t pointer) {
    struct node *node = gps_imports.ending;
    while (node && node->import.pointer != pointer)
        node = node->next;
    return node;
}

/* A cached one is open again, for the first time. */
static inline void revive(struct node *node, enum gps_slot_via via, uint32_t trace) {
    uncache(node);
    node->import.count = node->import.opens = 1;
    node->import.by_rule = via == GPS_VIA_RULE;
    node->import.via = via;
    node->import.reopened = false;
    node->import.trace = trace;
    node->import.epoch = gps_registry_now();
}

static inline bool take(struct node *node, struct gps_import *import) {
    if (node) {
        *import = node->import;
        drop(node);
    }
    return unlocked(node != NULL);
}
