/* padding.c - a tree by address; see padding.h. */
#include "padding.h"

#include "hash_table.h"
#include "registry.h"
#include "util/forgotten.h"
#include "util/lock.h"

struct padding {
    struct gps_range range; /* where it lies */
    uint64_t pointer;       /* its memory */
    uint32_t era;
};
_Static_assert(offsetof(struct padding, range) == 0, "the first");

struct gps_range_span gps_padding_span;
GPS_FORGOTTEN(gps_padding_span);
static struct {
    GPS_LOCK(GPS_RANK_PADDINGS) lock;
    struct gps_range *paddings;
    struct gps_slab slab;
} state;
GPS_FORGOTTEN(state);

static void padding_drop(struct gps_range *padding) {
    gps_range_remove(&state.paddings, padding);
    gps_range_note_span(state.paddings, &gps_padding_span);
    gps_slab_put(&state.slab, padding);
}

/* Drops the paddings in a range: they belonged to memory that has ended. */
static void drop_within(uint64_t from, uint64_t end) {
    struct gps_range *old;
    while ((old = gps_range_from(state.paddings, from)) && old->from < end)
        padding_drop(old);
}

void gps_padding_add(uint64_t pointer, uint64_t size, uint64_t extent) {
    struct gps_alloc alloc;
    const bool any = size < extent && gps_registry_find(pointer, &alloc);
    GPS_LOCKED(&state.lock);
    drop_within(pointer, pointer + extent);
    struct padding *one = any ? gps_slab_get(&state.slab, sizeof(*one)) : NULL;
    if (!one)
        return;
    *one = (struct padding){
        {.from = pointer + size, .size = extent - size}, .pointer = pointer, .era = alloc.era};
    gps_range_add(&state.paddings, &one->range);
    gps_range_note_span(state.paddings, &gps_padding_span);
}

uint64_t gps_padding_drop(uint64_t pointer, uint64_t size) {
    GPS_LOCKED(&state.lock);
    struct gps_range *padding = gps_range_from(state.paddings, pointer + size);
    uint64_t extent = size;
    if (padding && padding->from == pointer + size) {
        extent += padding->size;
        padding_drop(padding);
    }
    return extent;
}

static bool padding_find(uint64_t address, uint64_t last, struct padding *found) {
    GPS_LOCKED(&state.lock);
    const struct gps_range *padding = gps_range_from(state.paddings, address);
    if (!padding || padding->from > last)
        return false;
    *found = *(const struct padding *)padding;
    return true;
}

/* Whether the padding's memory still exists: it ends with its context, too. */
static bool padding_is_there(const struct padding *padding) {
    struct gps_alloc alloc;
    return gps_registry_find(padding->pointer, &alloc) && alloc.era == padding->era &&
           alloc.kind != GPS_ALLOC_PLAIN;
}

bool gps_padding_within(uint64_t address, uint64_t size) {
    const uint64_t last = address + size - 1;
    struct padding padding;
    for (; padding_find(address, last, &padding); address = padding.range.from + padding.range.size)
        if (padding_is_there(&padding))
            return true;
    return false;
}
