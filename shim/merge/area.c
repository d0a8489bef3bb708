#include "area.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver_ops.h"
#include "util/clock.h"
#include "util/forgotten.h"
#include "util/lock.h"

static struct {
    GPS_LOCK(GPS_RANK_AREAS) lock;
    struct gps_range *areas;
    uint64_t serial;
    uint64_t ended;           /* contexts that ended */
    _Atomic unsigned padded;  /* areas that end within a block */
    _Atomic unsigned created; /* areas of memory of cuMemCreate */
} state;
GPS_FORGOTTEN(state);

const struct gps_rule gps_plain_rule = {.role = GPS_ROLE_MERGE, .quiet = UINT64_MAX};

struct gps_range_span gps_area_span;
GPS_FORGOTTEN(gps_area_span);

/* --- geometry --- */

unsigned gps_area_cut(uint64_t at, uint64_t end, uint64_t largest, struct gps_block *blocks) {
    unsigned count = 0;
    for (uint64_t size; at < end; at += size) {
        size = gps_area_piece(end - at, largest);
        if (blocks)
            blocks[count] = (struct gps_block){.at = at, .size = size, .slot = GPS_NO_SLOT};
        count++;
    }
    return count;
}

/* There is room for a block for each 2 MiB, because layout.c may cut the area so. */
struct gps_area *gps_area_new(uint64_t extent, uint64_t largest) {
    const uint64_t most = extent / GPS_MERGE_SMALL, words = most / 64 + 1;
    struct gps_area *area =
        calloc(1, sizeof(*area) + most * sizeof(area->blocks[0]) + words * sizeof(area->edges[0]));
    if (!area)
        return NULL;
    area->extent = extent;
    area->edges = (uint64_t *)&area->blocks[most];
    area->count = gps_area_cut(0, extent, largest, area->blocks);
    for (unsigned i = 0; i < area->count; i++) {
        const uint64_t page = area->blocks[i].at / GPS_MERGE_SMALL;
        area->edges[page / 64] |= UINT64_C(1) << page % 64;
    }
    return area;
}

/* --- the table --- */

void gps_area_lock(void) {
    gps_lock_take(&state.lock);
}

void gps_area_unlock(void) {
    gps_lock_give(&state.lock);
}

static struct gps_area *area_of_range(struct gps_range *range) {
    return (struct gps_area *)range;
}
_Static_assert(offsetof(struct gps_area, range) == 0, "the first");

struct gps_area *gps_area_from(uint64_t address) {
    return area_of_range(gps_range_from(state.areas, address));
}

struct gps_area *gps_area_next(const struct gps_area *area) {
    return gps_area_from(area ? area->pointer + area->extent : 0);
}

struct gps_area *gps_area_at(uint64_t address) {
    struct gps_area *area = gps_area_from(address);
    return area && area->pointer <= address ? area : NULL;
}

struct gps_area *gps_area_of(uint64_t address, uint64_t serial) {
    struct gps_area *area = gps_area_at(address);
    return area && area->serial == serial ? area : NULL;
}

void gps_area_move(uint64_t context, uint64_t to) {
    for (struct gps_area *area = gps_area_next(NULL); area; area = gps_area_next(area))
        if (area->context == context)
            area->context = to;
}

uint64_t gps_area_contexts_ended(void) {
    return state.ended;
}

void gps_area_forget_events(uint64_t context, uint64_t before) {
    state.ended++;
    for (struct gps_area *area = gps_area_next(NULL); area; area = gps_area_next(area))
        if (area->user.context == context && area->user.epoch < before)
            area->user.event = 0;
}

struct gps_area *gps_area_of_context(uint64_t context, uint64_t before) {
    struct gps_area *area = gps_area_next(NULL);
    while (area && (area->context != context || area->made >= before || area->created))
        area = gps_area_next(area);
    return area;
}

void gps_area_forget_context(uint64_t context, uint64_t before) {
    for (struct gps_area *area = gps_area_next(NULL); area; area = gps_area_next(area))
        if (area->created && area->context == context && area->made < before)
            area->context = 0;
}

int gps_area_enter(const struct gps_area *area) {
    return area->created && !area->context ? GPS_INVALID_CONTEXT : gps_ops->enter(area->context);
}

struct gps_block *gps_area_block(uint64_t address, uint64_t serial, struct gps_area **area) {
    unsigned first, end;
    *area = gps_area_of(address, serial);
    if (!*area)
        return NULL;
    gps_area_blocks(*area, address, 1, &first, &end);
    struct gps_block *block = &(*area)->blocks[first];
    return (*area)->pointer + block->at == address ? block : NULL;
}

void gps_area_add(struct gps_area *area) {
    area->range = (struct gps_range){.from = area->pointer, .size = area->extent};
    gps_range_add(&state.areas, &area->range);
    state.padded += area->size != area->extent;
    state.created += area->created != NULL;
    area->serial = ++state.serial;
    gps_range_note_span(state.areas, &gps_area_span);
}

void gps_area_remove(struct gps_area *area) {
    gps_range_remove(&state.areas, &area->range);
    state.padded -= area->size != area->extent;
    state.created -= area->created != NULL;
    gps_range_note_span(state.areas, &gps_area_span);
}

bool gps_area_padded_near(uint64_t address, uint64_t size) {
    return atomic_load_explicit(&state.padded, memory_order_relaxed) &&
           gps_area_near(address, size);
}

/* The first block that begins behind a place. */
static unsigned area_block_behind(const struct gps_area *area, uint64_t place) {
    unsigned low = 0, high = area->count;
    while (low < high) {
        const unsigned middle = (low + high) / 2;
        if (area->blocks[middle].at <= place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void gps_area_blocks(const struct gps_area *area, uint64_t address, uint64_t size, unsigned *first,
                     unsigned *end) {
    const uint64_t from = address > area->pointer ? address - area->pointer : 0;
    const uint64_t to = address + size - area->pointer;
    *first = area_block_behind(area, from);
    *first -= *first && from - area->blocks[*first - 1].at < area->blocks[*first - 1].size;
    *end = *first;
    while (*end < area->count && area->blocks[*end].at < to)
        ++*end;
}

uint64_t gps_area_part(uint64_t address, uint64_t size) {
    if (!state.created)
        return size;
    GPS_AREAS_LOCKED();
    const struct gps_area *area = gps_area_from(address);
    uint64_t part = size;
    if (area && area->created)
        part = (area->pointer > address ? area->pointer : area->pointer + area->extent) - address;
    return part < size ? part : size;
}

uint64_t gps_area_bits(const struct gps_area *area, const struct gps_block *block, uint64_t address,
                       uint64_t size) {
    const uint64_t start = area->pointer + block->at, part = block->size / 64;
    const uint64_t begin = address > start ? address - start : 0;
    const bool last = address + size >= area->pointer + area->size; /* nothing comes behind it */
    const uint64_t behind = last ? block->size : address + size - start;
    const uint64_t end = behind < block->size ? behind : block->size;
    return (~UINT64_C(0) >> (63 - (end - 1) / part)) & (~UINT64_C(0) << begin / part);
}

void gps_area_fill(const struct gps_area *area, struct gps_block *block, uint64_t address,
                   uint64_t size) {
    const uint64_t bits = gps_area_bits(area, block, address, size);
    const uint64_t start = area->pointer + block->at, part = block->size / 64;
    const uint64_t first = bits & -bits, last = UINT64_C(1) << (63 - __builtin_clzll(bits));
    const bool begins = address <= start || (address - start) % part == 0;
    const bool ends = address + size >= start + block->size ||
                      (address + size - start) % part == 0 ||
                      address + size >= area->pointer + area->size;
    block->filled |= bits;
    block->begun |= begins ? bits : bits & ~first;
    block->ended |= ends ? bits : bits & ~last;
}

void gps_area_write_begins(struct gps_area *area, uint64_t address, uint64_t size, bool upload,
                           bool captured) {
    const uint64_t now = gps_clock_monotonic();
    unsigned first, end;
    gps_area_blocks(area, address, size, &first, &end);
    for (unsigned i = first; i < end; i++) {
        struct gps_block *block = &area->blocks[i];
        block->writers++;
        block->written = now;
        block->excluded |= captured;
        if (upload)
            gps_area_fill(area, block, address, size);
    }
}

void gps_area_write_ends(struct gps_area *area, uint64_t address, uint64_t size) {
    const uint64_t now = gps_clock_monotonic();
    unsigned first, end;
    gps_area_blocks(area, address, size, &first, &end);
    for (unsigned i = first; i < end; i++) {
        area->blocks[i].writers -= area->blocks[i].writers != 0;
        area->blocks[i].written = now;
    }
}
