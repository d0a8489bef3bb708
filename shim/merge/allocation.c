#include "allocation.h"

#include <stdlib.h>
#include <string.h>

#include "backing.h"
#include "block.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "exclusion.h"
#include "gate/streams.h"
#include "gate/swap.h"
#include "log/event_log.h"
#include "not_merging.h"
#include "process/caller.h"
#include "shared_block.h"
#include "util/forgotten.h"
#include "vmm/mapping.h"

#define HUGE_SIZE (UINT64_C(1) << 40)

bool gps_merge_active, gps_blocks_active;
GPS_FORGOTTEN(gps_merge_active);
GPS_FORGOTTEN(gps_blocks_active);

static bool merges(const struct gps_rule *rule, const struct gps_program *program) {
    return rule->role == GPS_ROLE_MERGE &&
           gps_rule_is_for(rule, program->name, program->executable);
}

void gps_merge_start(const struct gps_config *config, const struct gps_program *program) {
    bool any = false;
    for (size_t i = 0; i < config->rule_count; i++)
        any |= merges(&config->rules[i], program);
    const bool suspends = config->options.suspend == GPS_SUSPEND_ON;
    gps_gate_active =
        (any || suspends) && config->options.mode == GPS_MODE_SHARE && gps_gate_start();
    gps_merge_active = any && gps_gate_active;
    gps_blocks_active = suspends && config->options.blocks == GPS_BLOCKS_ON && gps_gate_active;
}

/* --- an allocation --- */

/* An area that no rule took never merges. */
static void note_rule(struct gps_area *area) {
    const bool merges = gps_area_merges(area);
    if (merges) {
        area->lazy = area->rule->quiet == 0 && !gps_rdma_forbids(area->rule);
        gps_caller_name(area->caller, sizeof(area->caller));
        area->times = gps_exclusion_times(area);
    }
    for (unsigned i = 0; i < area->count; i++)
        area->blocks[i].excluded =
            !merges || area->times >= GPS_EXCLUDED || gps_rdma_forbids(area->rule);
}

static struct gps_area *area_make_requested(const struct gps_merge_request *request) {
    uint64_t granule;
    if (gps_ops->granularity(request->device, &granule) != GPS_OK || GPS_MERGE_SMALL % granule != 0)
        return NULL;
    struct gps_area *area =
        gps_area_new(gps_area_extent(request->size),
                     request->rule == &gps_plain_rule ? GPS_PLAIN_LARGE : GPS_MERGE_LARGE);
    if (!area)
        return NULL;
    area->size = request->size;
    area->context = request->context;
    area->rule = request->rule;
    area->index = request->index;
    area->device = request->device;
    area->made = gps_streams_epoch;
    memcpy(area->uuid, request->uuid, GPS_UUID_BYTES);
    note_rule(area);
    return area;
}

static void area_drop_blocks(struct gps_area *area) {
    for (unsigned i = 0; i < area->count; i++)
        gps_block_drop(area, &area->blocks[i]);
}

/* Makes the area's memory before the program has the address, or with overcommit later, and maps it
 * unless the area is lazy. An area that surely does not fit never takes other processes' memory. */
static int make_blocks(struct gps_area *area) {
    if (area->lazy && area->rule->overcommit)
        return gps_context_state();
    int code = gps_block_fits(area->extent) ? GPS_OK : GPS_OUT_OF_MEMORY;
    for (unsigned i = 0; code == GPS_OK && i < area->count; i++)
        code = area->lazy ? gps_block_make(area, &area->blocks[i])
                          : gps_block_back(area, &area->blocks[i]);
    return code;
}

/* False: a context has ended meanwhile, perhaps the area's. */
static bool area_add_unless_ended(struct gps_area *area, uint64_t contexts) {
    GPS_AREAS_LOCKED();
    if (gps_area_contexts_ended() != contexts)
        return false;
    gps_area_add(area);
    gps_backing_count(area->lazy ? (int64_t)area->extent : 0);
    return true;
}

static uint64_t contexts_ended(void) {
    GPS_AREAS_LOCKED();
    return gps_area_contexts_ended();
}

static _Atomic uint64_t prepared; /* a bit for each device that had an allocation */
GPS_FORGOTTEN(prepared);

/* Loads the kernels with a device's first allocation. If the program computes already, as in
 * another context, the first swap loads them, and blocks are read back until then. */
static void merge_kernels_load(int device) {
    const uint64_t bit = UINT64_C(1) << (device % 64);
    if ((atomic_fetch_or(&prepared, bit) & bit) || !gps_swap_try_lock())
        return;
    if (gps_swap_if_idle()) {
        gps_ops->load_kernels();
        gps_swap_end();
    }
    gps_swap_unlock();
}

/* Reserves addresses for the area, makes its memory, and adds it to the table. Other threads go on
 * meanwhile: they do not know the area yet. */
static int area_place(struct gps_area *area, uint64_t *pointer, const char **why) {
    const uint64_t contexts = contexts_ended();
    int code = gps_mapping_reserve(area->extent, &area->pointer);
    if (code != GPS_OK) {
        *why = "the driver reserves no addresses for its blocks";
        return code;
    }
    *pointer = area->pointer;
    code = make_blocks(area);
    if (code == GPS_OK && !area_add_unless_ended(area, contexts))
        code = GPS_NOT_READY;
    if (code != GPS_OK) {
        area_drop_blocks(area);
        gps_mapping_unreserve(area->pointer, area->extent);
    }
    if (code == GPS_OK && gps_area_merges(area))
        merge_kernels_load(area->device);
    return code;
}

/* GPS_NOT_READY: a context has ended meanwhile, and it is worth another try. */
static int make_and_place(const struct gps_merge_request *request, uint64_t *pointer,
                          const char **why) {
    struct gps_area *area = area_make_requested(request);
    if (!area) {
        *why = "its GPU has no memory in blocks of 2 MiB, or there was no memory to note it";
        return GPS_NOT_SUPPORTED;
    }
    const int code = area_place(area, pointer, why);
    if (code == GPS_OK)
        gps_streams_add(0);
    else
        free(area);
    return code;
}

int gps_merge_allocate(const struct gps_merge_request *request, uint64_t *pointer,
                       const char **why) {
    if (request->size < GPS_MERGE_LEAST)
        return GPS_NOT_SUPPORTED;
    if (request->size >= HUGE_SIZE && !gps_block_fits(request->size)) /* its table is huge, too */
        return GPS_OUT_OF_MEMORY;
    gps_swap_return();
    gps_merge_end_freed(GPS_MERGE_IF_ENDED);
    gps_rdma_look();
    const int code = make_and_place(request, pointer, why);
    return code == GPS_NOT_READY ? make_and_place(request, pointer, why) : code;
}

/* --- the end of an allocation --- */

/* Releases the block's memory, with gps_swap_lock and the lock of areas. In a freed area
 * end_unbacked has ended the unbacked blocks before. */
static void area_end_block(struct gps_area *area, struct gps_block *block) {
    const bool unbacked = gps_block_is_unbacked(block), merged = gps_block_is_merged(block);
    const bool referenced = merged || block->state == GPS_BLOCK_SPECULATIVE;
    if (unbacked && !area->freed)
        gps_backing_count(-(int64_t)block->size);
    gps_block_drop(area, block);
    if (merged)
        gps_merged_sum_private(block->size);
    if (referenced)
        gps_shared_release(block->slot);
    free(block->chunks);
    block->chunks = NULL;
}

static _Atomic unsigned waiting; /* areas that are freed on a stream, and still there */
GPS_FORGOTTEN(waiting);
static _Atomic unsigned ended; /* how many of them have ended, ever */

static void area_end(struct gps_area *area) {
    gps_area_remove(area);
    waiting -= area->freed;
    ended += area->freed;
    for (unsigned i = 0; i < area->count; i++)
        area_end_block(area, &area->blocks[i]);
    gps_mapping_unreserve(area->pointer, area->extent);
}

int gps_merge_free(uint64_t pointer) {
    const int code = gps_scope_synchronize();
    if (code != GPS_OK)
        return code;
    gps_swap_lock();
    gps_area_lock();
    struct gps_area *area = gps_area_at(pointer);
    const bool found = area && area->pointer == pointer;
    if (found)
        area_end(area);
    gps_area_unlock();
    gps_swap_unlock();
    if (found)
        free(area);
    gps_merge_end_freed(GPS_MERGE_IF_ENDED);
    return found ? GPS_OK : GPS_INVALID_VALUE;
}

static bool any_has_memory(const struct gps_area *area) {
    for (unsigned i = 0; i < area->count; i++)
        if (!gps_block_is_unbacked(&area->blocks[i]))
            return true;
    return false;
}

/* No work uses unbacked blocks: all work that may touch them has them mapped first. */
static void end_unbacked(struct gps_area *area) {
    for (unsigned i = 0; i < area->count; i++)
        if (gps_block_is_unbacked(&area->blocks[i]))
            area_end_block(area, &area->blocks[i]);
}

/* An event behind the work of a stream. */
static bool area_user_mark(uint64_t stream, struct gps_area_user *user) {
    user->epoch = gps_streams_epoch;
    return gps_ops->stream_context(stream, &user->context) == GPS_OK &&
           gps_ops->event_mark(stream, &user->event) == GPS_OK;
}

static void leave_on_stream(struct gps_area *area, bool stays, const struct gps_area_user *user) {
    if (!stays) {
        area_end(area);
        return;
    }
    end_unbacked(area);
    area->freed = true;
    area->user = *user;
    waiting++;
}

/* The event is made without a lock, because a stream may have no room for more work. */
bool gps_merge_free_ordered(uint64_t pointer, uint64_t stream) {
    struct gps_area_user user;
    if (!area_user_mark(stream, &user))
        return false;
    gps_swap_lock();
    gps_area_lock();
    struct gps_area *area = gps_area_at(pointer);
    const bool found =
        area && area->pointer == pointer && !area->freed && gps_ops->enter(area->context) == GPS_OK;
    const bool stays = found && any_has_memory(area);
    if (found) {
        leave_on_stream(area, stays, &user);
        gps_ops->leave();
    }
    gps_area_unlock();
    gps_swap_unlock();
    if (!stays)
        gps_ops->event_free(user.event);
    if (found && !stays)
        free(area);
    return found;
}

/* A lost stream, whose event fails, does not use the area. */
static bool is_unused(const struct gps_area *area) {
    return !area->user.event || gps_ops->event_state(area->user.event) != GPS_NOT_READY;
}

void gps_merge_end_freed_locked(void) {
    struct gps_area *next;
    gps_area_lock();
    for (struct gps_area *area = gps_area_next(NULL); area; area = next) {
        next = gps_area_next(area);
        if (!area->freed || !is_unused(area) || gps_ops->enter(area->context) != GPS_OK)
            continue;
        area_end(area);
        gps_ops->leave();
        if (area->user.event)
            gps_ops->event_free(area->user.event);
        free(area);
    }
    gps_area_unlock();
}

bool gps_merge_end_freed(enum gps_merge_end how) {
    const unsigned before = ended;
    if (!waiting)
        return false;
    GPS_DRIVER_SCOPE();
    if (how != GPS_MERGE_AT_ONCE)
        gps_swap_lock();
    else if (!gps_swap_try_lock())
        return false;
    gps_merge_end_freed_locked();
    gps_swap_unlock();
    if (how == GPS_MERGE_SURELY && ended == before && gps_scope_synchronize() == GPS_OK)
        gps_merge_end_freed(GPS_MERGE_IF_ENDED); /* or another thread ends them */
    return ended != before;
}

void gps_merge_purge(uint64_t context, uint64_t before) {
    struct gps_area *area;
    if (!gps_gate_active)
        return;
    gps_streams_remove_context(context, before);
    GPS_AREAS_LOCKED();
    gps_area_forget_events(context, before);
    gps_area_forget_context(context, before);
    while ((area = gps_area_of_context(context, before))) {
        area_end(area);
        free(area);
    }
}

/* --- the area of an address --- */

/* The lock's order is checked first: most addresses are far from all areas and never take it. */
bool gps_merge_find(uint64_t address, struct gps_area *found) {
    gps_lock_check((1u << GPS_RANK_AREAS) - 1, "a question whose memory it is");
    if (!gps_area_near(address, 1))
        return false;
    GPS_SCOPE();
    GPS_AREAS_LOCKED();
    const struct gps_area *area = gps_area_at(address);
    const bool watched = area && area->notes; /* `gpushare learn`: it is the driver's own */
    const bool any = area && !watched && !area->freed && address - area->pointer < area->size;
    if (any)
        *found = *area;
    return any;
}
