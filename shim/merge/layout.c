/* layout.c - see layout.h. */
#include "layout.h"

#include <string.h>

#include "block.h"
#include "driver/driver_ops.h"
#include "room.h"
#include "util/clock.h"

#define TIMEOUT (20 * GPS_SECOND) /* for the other blocks of a relayout to be frozen */

enum { TRIES = 8 };

/* --- where blocks should begin --- */

static uint64_t edge(uint64_t at) {
    return UINT64_C(1) << at / GPS_MERGE_SMALL;
}

/* Nothing follows the end of an allocation, so a copy up to there fills its last block. */
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

/* --- relayouts --- */

static uint64_t end_of(const struct gps_block *block) {
    return block->at + block->size;
}

/* Counts the blocks of both until they end at one place. */
static void match(const struct gps_block *old, const struct gps_block *wanted, unsigned *olds,
                  unsigned *count) {
    *olds = *count = 1;
    while (end_of(&old[*olds - 1]) != end_of(&wanted[*count - 1]))
        ++*(end_of(&old[*olds - 1]) < end_of(&wanted[*count - 1]) ? olds : count);
}

/* Finds the first range that begins with the block `from` or behind it. */
static bool find(const struct gps_area *area, unsigned from, struct gps_relayout *relayout) {
    struct gps_block *wanted = relayout->wanted;
    unsigned olds, count;
    if (!area->edges)
        return false;
    lay_out(area, wanted);
    for (unsigned old = 0; old < area->count; old += olds, wanted += count) {
        match(&area->blocks[old], wanted, &olds, &count);
        if (old < from || (olds == 1 && count == 1))
            continue;
        relayout->first = old;
        relayout->end = old + olds;
        relayout->count = count;
        memmove(relayout->wanted, wanted, count * sizeof(*wanted));
        return true;
    }
    return false;
}

/* The new blocks take the place of the old ones in the array. */
static void put(struct gps_area *area, const struct gps_relayout *relayout) {
    struct gps_block *blocks = area->blocks;
    memmove(&blocks[relayout->first + relayout->count], &blocks[relayout->end],
            (area->count - relayout->end) * sizeof(*blocks));
    memcpy(&blocks[relayout->first], relayout->wanted, relayout->count * sizeof(*blocks));
    area->count += relayout->first + relayout->count - relayout->end;
}

/* --- without memory --- */

static bool are_empty(const struct gps_area *area, const struct gps_relayout *relayout) {
    for (unsigned i = relayout->first; i < relayout->end; i++)
        if (area->blocks[i].state != GPS_BLOCK_UNBACKED)
            return false;
    return true;
}

void gps_layout_fit(struct gps_area *area) {
    struct gps_relayout relayout;
    for (unsigned from = 0; find(area, from, &relayout);) {
        from = relayout.end;
        if (!are_empty(area, &relayout))
            continue;
        for (unsigned i = 0; i < relayout.count; i++)
            relayout.wanted[i].excluded =
                area->blocks[relayout.first].excluded; /* as all that are UNBACKED */
        put(area, &relayout);
        from = relayout.first + relayout.count;
    }
}

/* --- frozen --- */

/* A block without memory may become frozen, because copies that are still to come give it some. */
static bool may_be_frozen(const struct gps_block *block) {
    return !block->excluded && (block->state == GPS_BLOCK_FROZEN || !gps_block_is_read_only(block));
}

/* Whether the block has been frozen since before a time. */
static bool is_frozen(const struct gps_block *block, uint64_t time) {
    return block->state == GPS_BLOCK_FROZEN && block->swapped < time;
}

static bool are_frozen(const struct gps_area *area, const struct gps_relayout *relayout,
                       uint64_t time) {
    for (unsigned i = relayout->first; i < relayout->end; i++)
        if (!is_frozen(&area->blocks[i], time))
            return false;
    return true;
}

static bool holds(const struct gps_area *area, const struct gps_relayout *relayout,
                  const struct gps_block *block) {
    bool all = block >= &area->blocks[relayout->first] && block < &area->blocks[relayout->end];
    for (unsigned i = relayout->first; all && i < relayout->end; i++)
        all = may_be_frozen(&area->blocks[i]);
    return all;
}

bool gps_layout_holds(const struct gps_area *area, const struct gps_block *block) {
    struct gps_relayout relayout = {.end = 0};
    bool held = false;
    if (area->tries >= TRIES || gps_clock_monotonic() - block->swapped >= TIMEOUT)
        return false;
    while (!held && find(area, relayout.end, &relayout))
        held = holds(area, &relayout, block);
    return held;
}

static bool find_frozen(const struct gps_area *area, struct gps_relayout *relayout) {
    bool found;
    relayout->end = 0;
    while ((found = find(area, relayout->end, relayout)) && !are_frozen(area, relayout, UINT64_MAX))
        ;
    return found;
}

bool gps_layout_next(uint64_t only, struct gps_relayout *relayout) {
    const struct gps_area before = {.pointer = relayout->pointer};
    bool found = false;
    GPS_AREAS_LOCKED();
    for (struct gps_area *area = gps_area_next(relayout->pointer ? &before : NULL); area && !found;
         area = gps_area_next(area)) {
        found = (!only || only == area->serial) && !area->freed && area->tries < TRIES &&
                find_frozen(area, relayout);
        if (!found)
            continue;
        area->tries++;
        relayout->pointer = area->pointer;
        relayout->serial = area->serial;
    }
    return found;
}

/* --- blocks with their bytes --- */

/* Others of the area may have been cut anew meanwhile. */
static bool is_there(const struct gps_area *area, const struct gps_relayout *relayout) {
    return relayout->end <= area->count &&
           area->blocks[relayout->first].at == relayout->wanted[0].at &&
           end_of(&area->blocks[relayout->end - 1]) ==
               end_of(&relayout->wanted[relayout->count - 1]);
}

static struct gps_area *area_of(const struct gps_relayout *relayout, uint64_t time) {
    struct gps_area *area = gps_area_by_serial(relayout->serial);
    return area && is_there(area, relayout) && are_frozen(area, relayout, time) ? area : NULL;
}

/* Each 64th of an old block lies in one new block, which inherits its bit. */
static void carry_filled(const struct gps_area *area, struct gps_relayout *relayout) {
    struct gps_block *to = relayout->wanted;
    for (const struct gps_block *from = &area->blocks[relayout->first];
         from < &area->blocks[relayout->end]; from++)
        for (unsigned part = 0; part < 64; part++) {
            const uint64_t size = from->size / 64, at = from->at + part * size;
            to += at == end_of(to);
            if (from->filled >> part & 1)
                gps_area_fill(area, to, area->pointer + at, size);
        }
}

/* Copies the blocks, in the area's context. There must be room for as many bytes of others, too. */
static bool copy_all(const struct gps_area *area, struct gps_relayout *relayout) {
    const uint64_t size = end_of(&relayout->wanted[relayout->count - 1]) - relayout->wanted[0].at;
    struct gps_room_claim claim;
    bool copied =
        gps_room_claim(area, size, &claim) && gps_area_has_room(area->device, area->uuid, 2 * size);
    for (unsigned i = 0; i < relayout->count && copied; i++)
        copied = gps_block_copy(area, &relayout->wanted[i], &relayout->wanted[i].memory) == GPS_OK;
    gps_room_unclaim(&claim);
    return copied;
}

/* The area may be gone, and its context with it. */
bool gps_layout_copy(struct gps_relayout *relayout) {
    bool copied = false;
    GPS_AREAS_LOCKED();
    const struct gps_area *area = area_of(relayout, UINT64_MAX);
    if (area && gps_ops->enter(area->context) == GPS_OK) {
        relayout->copied = gps_clock_monotonic();
        carry_filled(area, relayout);
        copied = copy_all(area, relayout);
        gps_ops->leave();
    }
    return copied;
}

void gps_layout_exchange(struct gps_relayout *relayout) {
    struct gps_area *area = area_of(relayout, relayout->copied);
    if (!area || gps_ops->enter(area->context) != GPS_OK)
        return;
    if (gps_block_exchange(area, &area->blocks[relayout->first], relayout->end - relayout->first,
                           relayout->wanted, relayout->count) == GPS_OK) {
        for (unsigned i = 0; i < relayout->count; i++)
            relayout->wanted[i].swapped = gps_clock_monotonic();
        put(area, relayout);
        area->tries = 0;
        relayout->count = 0;
    }
    gps_ops->leave();
}

void gps_layout_end(struct gps_relayout *relayout) {
    for (unsigned i = 0; i < relayout->count; i++)
        if (relayout->wanted[i].memory)
            gps_ops->block_release(relayout->wanted[i].memory);
    relayout->count = 0;
}
