/* layout.c - see layout.h. */
#include "layout.h"

#include <string.h>

#include "block.h"
#include "driver/driver_ops.h"
#include "util/clock.h"

#define PATIENCE (20 * GPS_SECOND) /* for the other blocks of a stretch to be frozen */

enum { TRIES = 8 };

/* --- where blocks should begin --- */

static uint64_t edge(uint64_t at) {
    return UINT64_C(1) << at / GPS_MERGE_SMALL;
}

/* Behind the end of an allocation comes nothing: a copy up to there fills its last block. */
void gps_layout_note(struct gps_area *area, uint64_t address, uint64_t size) {
    const uint64_t from = gps_area_extent(address - area->pointer);
    const uint64_t end = address + size - area->pointer;
    const uint64_t to = end < area->size ? end / GPS_MERGE_SMALL * GPS_MERGE_SMALL : area->extent;
    if (area->extent > GPS_MERGE_POOL || to < from + GPS_MERGE_TENSOR)
        return;
    area->edges &= ~(edge(to) - edge(from)); /* of tensors that were there before */
    area->edges |= edge(from) | (to < area->extent ? edge(to) : 0);
}

static void lay_out(const struct gps_area *area, struct gps_block *blocks) {
    for (uint64_t at = 0, end; at < area->extent; at = end) {
        end = at + GPS_MERGE_SMALL;
        while (end < area->extent && !(area->edges & edge(end)))
            end += GPS_MERGE_SMALL;
        blocks += gps_area_cut(at, end, blocks);
    }
}

/* --- stretches --- */

static uint64_t end_of(const struct gps_block *block) {
    return block->at + block->size;
}

/* How many blocks from both until they end at one place. */
static void match(const struct gps_block *old, const struct gps_block *wanted, unsigned *olds,
                  unsigned *count) {
    *olds = *count = 1;
    while (end_of(&old[*olds - 1]) != end_of(&wanted[*count - 1]))
        ++*(end_of(&old[*olds - 1]) < end_of(&wanted[*count - 1]) ? olds : count);
}

/* The first that begins with the block `from` or behind it. */
static bool find(const struct gps_area *area, unsigned from, struct gps_stretch *stretch) {
    struct gps_block *wanted = stretch->wanted;
    unsigned olds, count;
    if (!area->edges)
        return false;
    lay_out(area, wanted);
    for (unsigned old = 0; old < area->count; old += olds, wanted += count) {
        match(&area->blocks[old], wanted, &olds, &count);
        if (old < from || (olds == 1 && count == 1))
            continue;
        stretch->first = old;
        stretch->end = old + olds;
        stretch->count = count;
        memmove(stretch->wanted, wanted, count * sizeof(*wanted));
        return true;
    }
    return false;
}

/* The new blocks take the place of the old ones in the array. */
static void put(struct gps_area *area, const struct gps_stretch *stretch) {
    struct gps_block *blocks = area->blocks;
    memmove(&blocks[stretch->first + stretch->count], &blocks[stretch->end],
            (area->count - stretch->end) * sizeof(*blocks));
    memcpy(&blocks[stretch->first], stretch->wanted, stretch->count * sizeof(*blocks));
    area->count += stretch->first + stretch->count - stretch->end;
}

/* --- without memory --- */

static bool are_empty(const struct gps_area *area, const struct gps_stretch *stretch) {
    for (unsigned i = stretch->first; i < stretch->end; i++)
        if (area->blocks[i].state != GPS_BLOCK_UNBACKED)
            return false;
    return true;
}

void gps_layout_fit(struct gps_area *area) {
    struct gps_stretch stretch;
    for (unsigned from = 0; find(area, from, &stretch);) {
        from = stretch.end;
        if (!are_empty(area, &stretch))
            continue;
        for (unsigned i = 0; i < stretch.count; i++)
            stretch.wanted[i].excluded =
                area->blocks[stretch.first].excluded; /* as all that are UNBACKED */
        put(area, &stretch);
        from = stretch.first + stretch.count;
    }
}

/* --- frozen --- */

/* The copies that are still to come give memory to what has none. */
static bool may_be_frozen(const struct gps_block *block) {
    return !block->excluded && (block->state == GPS_BLOCK_FROZEN || !gps_block_is_read_only(block));
}

/* Since before a time. */
static bool is_frozen(const struct gps_block *block, uint64_t time) {
    return block->state == GPS_BLOCK_FROZEN && block->swapped < time;
}

static bool are_frozen(const struct gps_area *area, const struct gps_stretch *stretch,
                       uint64_t time) {
    for (unsigned i = stretch->first; i < stretch->end; i++)
        if (!is_frozen(&area->blocks[i], time))
            return false;
    return true;
}

static bool holds(const struct gps_area *area, const struct gps_stretch *stretch,
                  const struct gps_block *block) {
    bool all = block >= &area->blocks[stretch->first] && block < &area->blocks[stretch->end];
    for (unsigned i = stretch->first; all && i < stretch->end; i++)
        all = may_be_frozen(&area->blocks[i]);
    return all;
}

bool gps_layout_holds(const struct gps_area *area, const struct gps_block *block) {
    struct gps_stretch stretch = {.end = 0};
    bool held = false;
    if (area->tries >= TRIES || gps_clock_monotonic() - block->swapped >= PATIENCE)
        return false;
    while (!held && find(area, stretch.end, &stretch))
        held = holds(area, &stretch, block);
    return held;
}

static bool find_frozen(const struct gps_area *area, struct gps_stretch *stretch) {
    bool found;
    stretch->end = 0;
    while ((found = find(area, stretch->end, stretch)) && !are_frozen(area, stretch, UINT64_MAX))
        ;
    return found;
}

bool gps_layout_next(uint64_t only, struct gps_stretch *stretch) {
    const struct gps_area before = {.pointer = stretch->pointer};
    bool found = false;
    gps_area_lock();
    for (struct gps_area *area = gps_area_next(stretch->pointer ? &before : NULL); area && !found;
         area = gps_area_next(area)) {
        found = (!only || only == area->serial) && !area->freed && area->tries < TRIES &&
                find_frozen(area, stretch);
        if (!found)
            continue;
        area->tries++;
        stretch->pointer = area->pointer;
        stretch->serial = area->serial;
    }
    gps_area_unlock();
    return found;
}

/* --- blocks with their bytes --- */

/* Others of the area may have been cut anew meanwhile. */
static bool is_there(const struct gps_area *area, const struct gps_stretch *stretch) {
    return stretch->end <= area->count &&
           area->blocks[stretch->first].at == stretch->wanted[0].at &&
           end_of(&area->blocks[stretch->end - 1]) == end_of(&stretch->wanted[stretch->count - 1]);
}

static struct gps_area *area_of(const struct gps_stretch *stretch, uint64_t time) {
    struct gps_area *area = gps_area_by_serial(stretch->serial);
    return area && is_there(area, stretch) && are_frozen(area, stretch, time) ? area : NULL;
}

/* A part of one block lies in one of the others. */
static void carry_filled(const struct gps_area *area, struct gps_stretch *stretch) {
    struct gps_block *to = stretch->wanted;
    for (const struct gps_block *from = &area->blocks[stretch->first];
         from < &area->blocks[stretch->end]; from++)
        for (unsigned part = 0; part < 64; part++) {
            const uint64_t size = from->size / 64, at = from->at + part * size;
            to += at == end_of(to);
            if (from->filled >> part & 1)
                to->filled |= gps_area_bits(area, to, area->pointer + at, size);
        }
}

/* In the area's context. There must be room for as much of others', too. */
static bool copy_all(const struct gps_area *area, struct gps_stretch *stretch) {
    const uint64_t size = end_of(&stretch->wanted[stretch->count - 1]) - stretch->wanted[0].at;
    bool copied = gps_area_has_room(area->device, 2 * size);
    for (unsigned i = 0; i < stretch->count && copied; i++)
        copied = gps_block_copy(area, &stretch->wanted[i], &stretch->wanted[i].memory) == GPS_OK;
    return copied;
}

/* The context may have gone with the area. */
bool gps_layout_copy(struct gps_stretch *stretch) {
    bool copied = false;
    gps_area_lock();
    const struct gps_area *area = area_of(stretch, UINT64_MAX);
    if (area && gps_ops->enter(area->context) == GPS_OK) {
        stretch->copied = gps_clock_monotonic();
        carry_filled(area, stretch);
        copied = copy_all(area, stretch);
        gps_ops->leave();
    }
    gps_area_unlock();
    return copied;
}

void gps_layout_exchange(struct gps_stretch *stretch) {
    struct gps_area *area = area_of(stretch, stretch->copied);
    if (!area || gps_ops->enter(area->context) != GPS_OK)
        return;
    if (gps_block_exchange(area, &area->blocks[stretch->first], stretch->end - stretch->first,
                           stretch->wanted, stretch->count) == GPS_OK) {
        for (unsigned i = 0; i < stretch->count; i++)
            stretch->wanted[i].swapped = gps_clock_monotonic();
        put(area, stretch);
        area->tries = 0;
        stretch->count = 0;
    }
    gps_ops->leave();
}

void gps_layout_end(struct gps_stretch *stretch) {
    for (unsigned i = 0; i < stretch->count; i++)
        if (stretch->wanted[i].memory)
            gps_ops->block_release(stretch->wanted[i].memory);
    stretch->count = 0;
}
