#include "backing.h"

#include <stdlib.h>

#include "block.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "gate/gate.h"
#include "gate/swap.h"
#include "log/event_log.h"
#include "shared_block.h"
#include "util/clock.h"
#include "util/forgotten.h"
#include "util/program_signals.h"
#include "vmm/mapping.h"

#define LOCK_50MS (GPS_SECOND / 20)

static uint64_t empty; /* unbacked bytes of all areas; with the lock */
GPS_FORGOTTEN(empty);

void gps_backing_count(int64_t change) {
    empty = (uint64_t)((int64_t)empty + change);
    gps_gate_set_back(empty != 0);
}

static void note_backed(const struct gps_block *block) {
    gps_backing_count(-(int64_t)block->size);
}

int gps_merge_own(const struct gps_area *area, struct gps_block *block) {
    const int code = gps_block_own(area, block);
    if (code != GPS_OK)
        return code;
    note_backed(block);
    gps_shared_leave(block);
    return GPS_OK;
}

void gps_merge_share(struct gps_block *block) {
    gps_block_unmake(block);
    gps_block_set_state(block, GPS_BLOCK_SHARED);
    gps_merged_sum_merged(block->size, block->size);
    note_backed(block);
    free(block->chunks);
    block->chunks = NULL;
}

void gps_merge_share_touched(struct gps_area *area, uint64_t until) {
    for (unsigned i = 0; i < area->count; i++) {
        struct gps_block *block = &area->blocks[i];
        if (block->state == GPS_BLOCK_SPECULATIVE && !~block->filled && !block->excluded &&
            block->written <= until)
            gps_merge_share(block);
    }
}

int gps_merge_back(const struct gps_area *area, struct gps_block *block) {
    const int code = gps_block_back(area, block);
    if (code == GPS_OK)
        note_backed(block);
    return code;
}

/* With only_made, a block whose memory overcommit has not made yet stays unbacked. */
static int back(const struct gps_area *area, struct gps_block *block, bool only_made) {
    if (only_made && block->state == GPS_BLOCK_UNBACKED && !block->made)
        return GPS_OK;
    if (block->state == GPS_BLOCK_SPECULATIVE)
        return gps_merge_own(area, block);
    return block->state == GPS_BLOCK_UNBACKED ? gps_merge_back(area, block) : GPS_OK;
}

static bool has_unbacked(const struct gps_area *area) {
    for (unsigned i = 0; !area->freed && i < area->count; i++)
        if (gps_block_is_unbacked(&area->blocks[i]))
            return true;
    return false;
}

static int back_area(struct gps_area *area, bool only_made) {
    gps_merge_share_touched(area, UINT64_MAX);
    if (!has_unbacked(area))
        return GPS_OK;
    int code = gps_ops->enter(area->context);
    if (code != GPS_OK)
        return code;
    for (unsigned i = 0; code == GPS_OK && i < area->count; i++)
        code = back(area, &area->blocks[i], only_made);
    gps_ops->leave();
    return code;
}

/* Whether the area needs no gps_swap_lock: no thread compares copies with its unbacked blocks, and
 * no thread may destroy its context. */
static bool area_is_sole(const struct gps_area *area, uint64_t context) {
    bool sole = area->context == context;
    for (unsigned i = 0; i < area->count; i++)
        sole &= area->blocks[i].state != GPS_BLOCK_SPECULATIVE;
    return sole;
}

/* Without gps_swap_lock. True: no block is left unbacked. */
static bool back_sole(void) {
    uint64_t context;
    GPS_AREAS_LOCKED();
    if (gps_ops->context(&context) != GPS_OK)
        return false;
    for (struct gps_area *area = gps_area_next(NULL); area; area = gps_area_next(area))
        if (area_is_sole(area, context) && back_area(area, false) != GPS_OK)
            return false;
    return !empty;
}

/* Who has gps_swap_lock may wait for a kernel of ours, and that for one that fills the card. */
static int back_all(void) {
    int here, code = GPS_OK;
    if (!gps_swap_lock_within(LOCK_50MS)) {
        if (back_sole())
            return GPS_OK;
        gps_swap_lock();
    }
    gps_area_lock();
    const bool known = gps_ops->device(&here) == GPS_OK;
    for (struct gps_area *area = gps_area_next(NULL); area && empty; area = gps_area_next(area)) {
        const int failed = back_area(area, false);
        if (code == GPS_OK && (!known || gps_mapping_reaches(here, area->device)))
            code = failed;
    }
    gps_area_unlock();
    gps_swap_unlock();
    return code;
}

/* The last wait for memory took its second in vain, and no memory was found since. */
static _Atomic bool timed_out;
GPS_FORGOTTEN(timed_out);

bool gps_merge_await_memory(uint64_t *until) {
    const uint64_t now = gps_clock_monotonic();
    if (!*until)
        *until = timed_out ? now : now + GPS_SECOND;
    timed_out = now >= *until;
    if (!timed_out)
        gps_program_signals_poll(NULL, GPS_MS);
    return !timed_out;
}

int gps_merge_back_all(void) {
    uint64_t until = 0;
    int code;
    GPS_DRIVER_SCOPE();
    while ((code = back_all()) == GPS_OUT_OF_MEMORY && gps_merge_await_memory(&until))
        ;
    if (code == GPS_OK)
        timed_out = false;
    return code;
}

int gps_merge_back_made(void) {
    int code = GPS_OK;
    gps_swap_lock();
    gps_area_lock();
    for (struct gps_area *area = gps_area_next(NULL); area && code == GPS_OK;
         area = gps_area_next(area))
        code = back_area(area, true);
    gps_area_unlock();
    gps_swap_unlock();
    return code;
}

static void area_allow_backed(const struct gps_area *area, int accessor) {
    for (unsigned i = 0; i < area->count; i++) {
        const struct gps_block *block = &area->blocks[i];
        if (block->state != GPS_BLOCK_UNBACKED)
            gps_ops->allow(area->pointer + block->at, block->size, accessor,
                           block->state == GPS_BLOCK_PRIVATE);
    }
}

/* Access that is added hurts no work that is under way. */
void gps_merge_enable(int home, int accessor) {
    GPS_AREAS_LOCKED();
    for (struct gps_area *area = gps_area_next(NULL); area; area = gps_area_next(area))
        if (area->device == home && !area->created)
            area_allow_backed(area, accessor);
}
