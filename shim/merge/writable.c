#include "writable.h"

#include <stdatomic.h>

#include "backing.h"
#include "block.h"
#include "created.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "gate/swap.h"
#include "layout.h"
#include "log/log.h"
#include "not_merging.h"
#include "shared_block.h"
#include "stack/bypass.h"
#include "util/forgotten.h"
#include "util/text.h"

/* --- one merged block --- */

static struct gps_block *writable_block_find(uint64_t address, struct gps_area **area) {
    unsigned first, end;
    *area = gps_area_at(address);
    if (!*area)
        return NULL;
    gps_area_blocks(*area, address, 1, &first, &end);
    return &(*area)->blocks[first];
}

/* Attempts to swap one block, and the copy that is to take its place. A copy holds good as long as
 * the block is the same and read-only. */
struct attempts {
    struct gps_swap_tries swap;
    uint64_t memory; /* 0: there is no copy */
    uint64_t serial, at, swapped;
    bool overcommitted; /* the block that lacks memory was never mapped */
    uint64_t until;     /* of gps_merge_await_memory */
};

static void drop_copy(struct attempts *attempts) {
    if (attempts->memory)
        gps_ops->block_release(attempts->memory);
    attempts->memory = 0;
}

static int attempts_copy(const struct gps_area *area, struct gps_block *block,
                         struct attempts *attempts) {
    if (attempts->memory && attempts->serial == area->serial && attempts->at == block->at &&
        attempts->swapped == block->swapped)
        return GPS_OK;
    drop_copy(attempts);
    attempts->serial = area->serial;
    attempts->at = block->at;
    attempts->swapped = block->swapped;
    return gps_block_copy(area, block, &attempts->memory);
}

/* Makes a copy for a block that others may have. A frozen block only gets its access back. */
static int attempts_prepare(const struct gps_area *area, struct gps_block *block,
                            struct attempts *attempts) {
    if (gps_block_is_read_only(block) && block->state != GPS_BLOCK_FROZEN)
        return attempts_copy(area, block, attempts);
    drop_copy(attempts);
    attempts->overcommitted = block->state == GPS_BLOCK_SPECULATIVE;
    return block->state == GPS_BLOCK_SPECULATIVE ? gps_merge_own(area, block) : GPS_OK;
}

static int swap(const struct gps_area *area, struct gps_block *block, struct attempts *attempts) {
    if (!attempts->memory) /* an offer that has begun meanwhile must not be written */
        return block->state == GPS_BLOCK_FROZEN ? gps_block_thaw(area, block) : GPS_NOT_READY;
    const int code = gps_block_replace(area, block, attempts->memory, true);
    if (code != GPS_OK)
        return code;
    attempts->memory = 0;
    gps_shared_leave(block);
    return GPS_OK;
}

/* A change of access hurts work that uses the block, in both directions. GPS_NOT_READY: the device
 * is at work. Other threads may move the block in the array while the lock is free. */
static int make_private(uint64_t address, struct attempts *attempts) {
    struct gps_area *area;
    gps_area_lock();
    struct gps_block *block = writable_block_find(address, &area);
    int code = attempts_prepare(area, block, attempts);
    const bool left = code == GPS_OK && gps_block_is_read_only(block);
    gps_area_unlock();
    if (!left)
        return code;
    if (!gps_swap_try(&attempts->swap))
        return GPS_NOT_READY;
    gps_area_lock();
    block = writable_block_find(address, &area);
    code = swap(area, block, attempts);
    gps_area_unlock();
    gps_swap_end();
    return code;
}

/* The caller has gps_swap_lock, so no other thread swaps the block, and its area stays. Its context
 * may be another than the program's current one. */
static int make_private_at(uint64_t address, struct attempts *attempts) {
    struct gps_area *area;
    gps_area_lock();
    const bool found = writable_block_find(address, &area);
    gps_area_unlock();
    int code = found ? gps_area_enter(area) : GPS_OK;
    if (!found || code != GPS_OK)
        return code;
    code = make_private(address, attempts);
    gps_ops->leave();
    return code;
}

/* --- a range --- */

/* Finds the first address of the range that lies in a merged block. 0: there is none, and all of
 * the range can be written. The caller has the lock, and has entered the area's context. */
static int make_writable(struct gps_area *area, uint64_t to, uint64_t size, uint64_t *merged) {
    unsigned first, end;
    int code = GPS_OK;
    gps_area_blocks(area, to, size, &first, &end);
    *merged = 0;
    for (unsigned i = first; code == GPS_OK && !*merged && i < end; i++) {
        struct gps_block *block = &area->blocks[i];
        if (block->state == GPS_BLOCK_UNBACKED && area->freed)
            continue; /* the driver refuses the copy */
        if (block->state == GPS_BLOCK_UNBACKED)
            code = gps_merge_back(area, block);
        else if (block->state != GPS_BLOCK_PRIVATE)
            *merged = area->pointer + block->at;
    }
    return code;
}

/* Whether the area has no access, so that the driver refuses the call. Memory whose context has
 * ended belongs to the context that uses it now. */
static bool is_out_of_reach(struct gps_area *area) {
    int device;
    if (!area->created)
        return false;
    if (!area->context && gps_ops->device(&device) == GPS_OK && device == area->device)
        gps_ops->context(&area->context);
    return !gps_area_is_usable(area);
}

static int writable_write_begin(uint64_t to, uint64_t size, bool upload, bool captured,
                                uint64_t *merged) {
    int code = GPS_OK;
    *merged = 0;
    GPS_AREAS_LOCKED();
    struct gps_area *area = gps_area_at(to);
    if (area && gps_area_overrun(area, to, size)) {
        code = GPS_INVALID_VALUE;
    } else if (area && !is_out_of_reach(area) && (code = gps_area_enter(area)) == GPS_OK) {
        if (upload && !area->freed && gps_area_merges(area))
            gps_layout_note(area, to, size);
        code = make_writable(area, to, size, merged);
        if (code == GPS_OK && !*merged)
            gps_area_write_begins(area, to, size, upload, captured);
        gps_ops->leave();
    }
    return code;
}

/* GPS_NOT_READY: the device is at work, try again. */
static int try_begin(uint64_t to, uint64_t size, bool upload, bool captured,
                     struct attempts *attempts) {
    uint64_t merged = 0;
    int code;
    attempts->overcommitted = true;
    while ((code = writable_write_begin(to, size, upload, captured, &merged)) == GPS_OK && merged) {
        attempts->overcommitted = false;
        gps_swap_lock();
        code = make_private_at(merged, attempts);
        gps_swap_unlock();
        if (code != GPS_OK)
            break;
        attempts->overcommitted = true;
    }
    return code;
}

/* A signal handler may leave a wait by longjmp, so a long wait keeps no copy. True: try again. */
static bool wait(int code, struct attempts *attempts) {
    const bool lacks = code == GPS_OUT_OF_MEMORY && attempts->overcommitted;
    if (lacks || (code == GPS_NOT_READY && !gps_swap_is_soon(&attempts->swap)))
        drop_copy(attempts);
    if (code == GPS_NOT_READY)
        gps_swap_wait(&attempts->swap);
    return code == GPS_NOT_READY || (lacks && gps_merge_await_memory(&attempts->until));
}

static uint64_t part_of(uint64_t address, uint64_t size) {
    if (!gps_created_any())
        return size;
    GPS_SCOPE();
    return gps_area_part(address, size);
}

static int begin_part(uint64_t to, uint64_t size, bool upload, bool captured) {
    struct attempts attempts = {.memory = 0};
    int code;
    GPS_DRIVER_SCOPE();
    do
        code = try_begin(to, size, upload, captured, &attempts);
    while (wait(code, &attempts));
    drop_copy(&attempts);
    return code;
}

static void end_part(uint64_t to, uint64_t size) {
    GPS_SCOPE();
    GPS_AREAS_LOCKED();
    struct gps_area *area = gps_area_at(to);
    if (area)
        gps_area_write_ends(area, to, size);
}

/* If a part of the range cannot be written, none is. */
int gps_writable_begin(uint64_t to, uint64_t size, bool upload, bool captured) {
    uint64_t done = 0, part;
    int code = GPS_OK;
    while (done < size && code == GPS_OK) {
        part = part_of(to + done, size - done);
        code = begin_part(to + done, part, upload, captured);
        done += code == GPS_OK ? part : 0;
    }
    if (code != GPS_OK && done)
        gps_writable_end(to, done);
    return code;
}

void gps_writable_end(uint64_t to, uint64_t size) {
    for (uint64_t done = 0, part; done < size; done += part) {
        part = part_of(to + done, size - done);
        end_part(to + done, part);
    }
}

/* --- all memory becomes plain --- */

static struct { _Atomic bool made, complained; } state;
GPS_FORGOTTEN(state);

static void end_merging(const char *function) {
    GPS_SCOPE();
    gps_pause_for_good(function, GPS_NOT_MERGING_UNKNOWN);
    gps_not_merging_set(gps_pause_why());
}

/* The next allocation from an address on. */
static bool next_area(uint64_t from, uint64_t *pointer, uint64_t *size) {
    GPS_SCOPE();
    GPS_AREAS_LOCKED();
    const struct gps_area *area = gps_area_from(from);
    if (area) {
        *pointer = area->pointer;
        *size = area->size;
    }
    return area;
}

/* For good. */
static int plain_make_range(uint64_t pointer, uint64_t size) {
    int code = gps_created_keep_range(pointer, size);
    if (code == GPS_OK)
        code = gps_writable_begin(pointer, size, false, true);
    if (code == GPS_OK)
        gps_writable_end(pointer, size);
    return code;
}

static bool plain_make_all(void) {
    uint64_t pointer, size, from = 0;
    bool all = true;
    for (; next_area(from, &pointer, &size); from = pointer + size)
        all &= plain_make_range(pointer, size) == GPS_OK;
    return all;
}

/* The function is not refused, because the error that it would answer is unknown. */
static void plain_complain(const char *function) {
    char message[256];
    struct gps_text text = GPS_TEXT(message);
    if (atomic_exchange(&state.complained, true))
        return;
    gps_text_strs(&text, function, " runs though memory is still merged: the GPU has no room to ",
                  "give this process its own");
    GPS_SCOPE();
    gps_log_notice(GPS_LEVEL_WARNING, message);
}

void gps_plain_make(const char *function, bool surely) {
    if (state.made) { /* a block that another thread allocated meanwhile may have no memory yet */
        if (gps_gate_state & GPS_GATE_BACK)
            gps_merge_back_all();
        return;
    }
    if (!surely && !gps_area_near(0, UINT64_MAX))
        return;
    end_merging(function);
    state.made = plain_make_all();
    if (!state.made)
        plain_complain(function);
}

void gps_plain_look(void) {
    char name[64];
    struct gps_text text = GPS_TEXT(name);
    if (!gps_pause_name() && gps_bypass_look(gps_ops->sonames, &text))
        gps_pause_for_good(name, GPS_NOT_MERGING_BYPASSED);
}

void gps_plain_look_and_make(void) {
    gps_plain_look();
    if (gps_pause_name() && !state.made && !state.complained)
        gps_plain_make(gps_pause_name(), true);
}
