/*
 * range_tree.h - ranges of addresses that do not overlap, in the order of their addresses.
 *
 * A treap: a search tree by address and a heap by a weight made from the address, so a hundred
 * thousand ranges in any order are some twenty steps deep. An object has its node as a member. The
 * functions take no lock and allocate nothing; the caller does. An empty tree is NULL.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct gps_range {
    struct gps_range *low, *high;
    uint64_t from, size;
};

static inline uint64_t gps_range_weight(const struct gps_range *range) {
    const uint64_t mixed = (range->from ^ range->from >> 21) * 0x9e3779b97f4a7c15u;
    return mixed ^ mixed >> 29;
}

static inline uint64_t gps_range_end(const struct gps_range *range) {
    return range->from + range->size;
}

/* The new range overlaps none in the tree. */
static inline void gps_range_add(struct gps_range **tree, struct gps_range *range) {
    struct gps_range **at = tree, **low = &range->low, **high = &range->high;
    while (*at && gps_range_weight(*at) >= gps_range_weight(range))
        at = range->from < (*at)->from ? &(*at)->low : &(*at)->high;
    for (struct gps_range *rest = *at; rest;)
        if (rest->from < range->from) {
            *low = rest;
            low = &rest->high;
            rest = *low;
        } else {
            *high = rest;
            high = &rest->low;
            rest = *high;
        }
    *low = *high = NULL;
    *at = range;
}

/* The range is in the tree. */
static inline void gps_range_remove(struct gps_range **tree, const struct gps_range *range) {
    struct gps_range **at = tree, *low = range->low, *high = range->high;
    while (*at != range)
        at = range->from < (*at)->from ? &(*at)->low : &(*at)->high;
    while (low && high)
        if (gps_range_weight(low) >= gps_range_weight(high)) {
            *at = low;
            at = &low->high;
            low = *at;
        } else {
            *at = high;
            at = &high->low;
            high = *at;
        }
    *at = low ? low : high;
}

/* The first range that ends above the address: around it, or the next; NULL: there is none. */
static inline struct gps_range *gps_range_from(struct gps_range *tree, uint64_t address) {
    struct gps_range *first = NULL;
    while (tree) {
        const int ends_above = gps_range_end(tree) > address;
        first = ends_above ? tree : first;
        tree = ends_above ? tree->low : tree->high;
    }
    return first;
}

/* The span that all ranges of a tree lie in, read without its lock; both equal: there is none. */
struct gps_range_span {
    uint64_t lowest, highest;
};

static inline void gps_range_note_span(struct gps_range *tree, struct gps_range_span *span) {
    const struct gps_range *first = gps_range_from(tree, 0), *last = tree;
    while (last && last->high)
        last = last->high;
    __atomic_store_n(&span->lowest, first ? first->from : 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&span->highest, last ? gps_range_end(last) : 0, __ATOMIC_SEQ_CST);
}
