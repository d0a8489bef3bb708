/* Small allocations within a block; see small.h. */
#include "small.h"

#include "../protocol.h"

enum { UNIT_SHIFT = 9, UNITS = 1 << (SIM_BLOCK_SHIFT - UNIT_SHIFT) };

struct small {
    uint16_t start[UNITS];       /* first unit of the allocation, and 1; 0: free */
    uint32_t size[UNITS];        /* at the first unit: bytes asked for */
    unsigned live, free, lowest; /* below lowest nothing is free */
    unsigned hopeless;           /* so many units in a row were not found since the last give */
    unsigned last_start, last_count;
};

struct small *small_create(void) {
    struct small *small = calloc(1, sizeof *small);
    if (small) {
        small->free = UNITS;
        small->hopeless = UNITS + 1;
    }
    return small;
}

void small_destroy(struct small *small) {
    free(small);
}

static bool is_free(const struct small *small, unsigned first, unsigned count) {
    for (unsigned i = first; i < first + count; i++)
        if (small->start[i])
            return false;
    return true;
}

/* The lowest run of `count` free units, or UNITS. */
static unsigned search(const struct small *small, unsigned count) {
    unsigned run = 0;
    for (unsigned i = small->lowest; i < UNITS; i++) {
        run = small->start[i] ? 0 : run + 1;
        if (run == count)
            return i + 1 - count;
    }
    return UNITS;
}

bool small_take(struct small *small, uint64_t size, uint64_t *offset) {
    unsigned count = (unsigned)((size + (1u << UNIT_SHIFT) - 1) >> UNIT_SHIFT), first;
    if (count > small->free || count >= small->hopeless)
        return false;
    if (small->last_count == count && is_free(small, small->last_start, count))
        first = small->last_start;
    else
        first = search(small, count);
    if (first == UNITS) {
        small->hopeless = count;
        return false;
    }
    for (unsigned i = first; i < first + count; i++)
        small->start[i] = (uint16_t)(first + 1);
    small->size[first] = (uint32_t)size;
    small->live++;
    small->free -= count;
    if (first == small->lowest)
        small->lowest = first + count;
    *offset = (uint64_t)first << UNIT_SHIFT;
    return true;
}

void small_give(struct small *small, uint64_t offset) {
    unsigned first = (unsigned)(offset >> UNIT_SHIFT), i = first;
    while (i < UNITS && small->start[i] == first + 1)
        small->start[i++] = 0;
    small->live--;
    small->free += i - first;
    small->hopeless = UNITS + 1;
    small->last_start = first;
    small->last_count = i - first;
    if (first < small->lowest)
        small->lowest = first;
}

bool small_find(const struct small *small, uint64_t at, uint64_t *offset, uint64_t *size) {
    unsigned start = small->start[at >> UNIT_SHIFT];
    if (!start)
        return false;
    *offset = (uint64_t)(start - 1) << UNIT_SHIFT;
    *size = small->size[start - 1];
    return true;
}

unsigned small_live(const struct small *small) {
    return small->live;
}

bool small_room(const struct small *small) {
    return small->free > 0;
}
