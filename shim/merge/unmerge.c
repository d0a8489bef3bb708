/* unmerge.c - see unmerge.h. */
#include "unmerge.h"

#include "allocation.h"
#include "block.h"
#include "process/driver_ops.h"
#include "process/scope.h"
#include "shared_block.h"
#include "swap.h"
#include "util/clock.h"

/* --- one merged block --- */

static struct gps_block *find(uint64_t address, struct gps_area **area) {
    unsigned first, end;
    *area = gps_area_at(address);
    if (!*area)
        return NULL;
    gps_area_blocks(*area, address, 1, &first, &end);
    return &(*area)->blocks[first];
}

/* With gps_swap_lock: nobody else swaps the block. */
static int make_private(uint64_t address) {
    struct gps_area *area;
    uint64_t memory;
    gps_area_lock();
    struct gps_block *block = find(address, &area);
    const bool merged = block && block->state == GPS_BLOCK_MERGED;
    int code = merged ? gps_block_copy(area, block, &memory) : GPS_OK;
    gps_area_unlock();
    if (!merged || code != GPS_OK)
        return code;
    if (!gps_swap_begin_surely()) {
        gps_ops->block_release(memory);
        return GPS_NOT_PERMITTED;
    }
    gps_area_lock();
    code = gps_block_replace(area, block, memory, true);
    if (code == GPS_OK) {
        block->state = GPS_BLOCK_PRIVATE;
        block->hashed = 0;
        gps_shared_release(&block->id, block->slot, block->owned);
    }
    gps_area_unlock();
    gps_swap_end();
    if (code != GPS_OK)
        gps_ops->block_release(memory);
    return code;
}

/* --- a range --- */

/* The first address of the range that lies in a merged block; 0: there is none, and all of it can
 * be written. With the lock, and the area's context. */
static int make_writable(struct gps_area *area, uint64_t to, uint64_t size, uint64_t *merged) {
    unsigned first, end;
    int code = GPS_OK;
    gps_area_blocks(area, to, size, &first, &end);
    *merged = 0;
    for (unsigned i = first; code == GPS_OK && !*merged && i < end; i++) {
        struct gps_block *block = &area->blocks[i];
        if (block->state == GPS_BLOCK_EMPTY) {
            code = gps_block_back(area, block);
            if (code == GPS_OK)
                gps_merge_no_longer_empty();
        } else if (block->state == GPS_BLOCK_FROZEN) {
            code = gps_block_thaw(area, block);
        } else if (block->state == GPS_BLOCK_MERGED) {
            *merged = area->pointer + block->at;
        }
    }
    return code;
}

/* The bits of a block that a range touches, 64 to a block. */
static uint64_t bits_of(const struct gps_block *block, uint64_t from, uint64_t to) {
    const uint64_t begin = from > block->at ? from - block->at : 0;
    const uint64_t end = to < block->at + block->size ? to - block->at : block->size;
    const uint64_t part = block->size / 64;
    const unsigned first = (unsigned)(begin / part), last = (unsigned)((end - 1) / part);
    return (~UINT64_C(0) >> (63 - last)) & (~UINT64_C(0) << first);
}

static void note_writer(struct gps_area *area, uint64_t to, uint64_t size, bool upload,
                        bool captured) {
    const uint64_t now = gps_clock_monotonic(), from = to - area->pointer;
    unsigned first, end;
    gps_area_blocks(area, to, size, &first, &end);
    for (unsigned i = first; i < end; i++) {
        struct gps_block *block = &area->blocks[i];
        block->writers++;
        block->written = now;
        block->fixed |= captured;
        if (upload)
            block->filled |= bits_of(block, from, from + size);
    }
}

static int begin(uint64_t to, uint64_t size, bool upload, bool captured, uint64_t *merged) {
    int code = GPS_OK;
    *merged = 0;
    gps_area_lock();
    struct gps_area *area = gps_area_at(to);
    if (area && area->lesson) {
        note_writer(area, to, size, upload, captured);
    } else if (area && (code = gps_ops->enter(area->context)) == GPS_OK) {
        code = make_writable(area, to, size, merged);
        if (code == GPS_OK && !*merged)
            note_writer(area, to, size, upload, captured);
        gps_ops->leave();
    }
    gps_area_unlock();
    return code;
}

int gps_unmerge_begin(uint64_t to, uint64_t size, bool upload, bool captured) {
    struct gps_scope scope;
    uint64_t merged = 0;
    int code;
    gps_scope_enter(&scope, 0);
    while ((code = begin(to, size, upload, captured, &merged)) == GPS_OK && merged) {
        gps_swap_lock();
        code = make_private(merged);
        gps_swap_unlock();
        if (code != GPS_OK)
            break;
    }
    gps_scope_end(&scope);
    return code;
}

void gps_unmerge_end(uint64_t to, uint64_t size) {
    struct gps_scope scope;
    unsigned first, end;
    gps_scope_begin(&scope);
    gps_area_lock();
    struct gps_area *area = gps_area_at(to);
    if (area) {
        const uint64_t now = gps_clock_monotonic();
        gps_area_blocks(area, to, size, &first, &end);
        for (unsigned i = first; i < end; i++) {
            area->blocks[i].writers -= area->blocks[i].writers != 0;
            area->blocks[i].written = now;
        }
    }
    gps_area_unlock();
    gps_scope_end(&scope);
}
