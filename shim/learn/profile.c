#include "profile.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "canary.h"
#include "driver/driver_ops.h"
#include "merge/block.h"
#include "merge/layout.h"
#include "process/caller.h"
#include "process/process.h"
#include "util/clock.h"

enum { MS = 1000000 };

struct gps_area *gps_profile_new(uint64_t pointer, uint64_t size, enum gps_profile_kind kind) {
    const uint64_t whole = gps_area_extent(size);
    const uint64_t most = kind == GPS_PROFILE_POOL ? 0 : whole / GPS_MERGE_SMALL;
    struct gps_area *area = gps_area_new(most * GPS_MERGE_SMALL, GPS_MERGE_LARGE);
    struct gps_profile *profile = calloc(1, sizeof(*profile) + most * sizeof(profile->progress[0]));
    if (!area || !profile) {
        free(area);
        free(profile);
        return NULL;
    }
    area->pointer = pointer;
    area->size = area->extent = size;
    area->notes = profile;
    area->lazy = true;
    gps_ops->context(&area->context);
    gps_caller_name(area->caller, sizeof(area->caller));
    profile->born = gps_clock_monotonic();
    profile->thread = syscall(SYS_gettid);
    profile->kind = kind;
    profile->dirty = true;
    return area;
}

void gps_profile_free(struct gps_area *area) {
    free(area->notes);
    free(area);
}

uint64_t gps_profile_bytes(const struct gps_area *area, const struct gps_block *block) {
    const uint64_t left = area->size - block->at;
    return left < block->size ? left : block->size;
}

/* A copy can end a while after its call, unless the block was seen to be stable. */
static bool is_explained(const struct gps_block *block, const struct gps_progress *progress,
                         uint64_t last_hashed) {
    return block->written > progress->stable && block->written + GPS_SECOND > last_hashed;
}

/* A block counts as PRIVATE once it is written. */
void gps_profile_write(struct gps_area *area, uint64_t address, uint64_t size, bool upload,
                       bool captured) {
    unsigned first, end;
    if (upload && area->count)
        gps_layout_note(area, address, size);
    gps_area_blocks(area, address, size, &first, &end);
    for (; first < end; first++)
        if (area->blocks[first].state == GPS_BLOCK_UNBACKED)
            gps_block_set_state(&area->blocks[first], GPS_BLOCK_PRIVATE);
    gps_area_write_begins(area, address, size, upload, captured);
}

void gps_profile_note(struct gps_area *area, struct gps_block *block, const struct gps_hash *hash,
                      uint64_t begun, bool stable) {
    struct gps_profile *profile = gps_profile_of(area);
    struct gps_progress *progress = gps_profile_progress(area, block);
    const uint64_t last_hashed = block->last_hashed;
    block->last_hashed = begun;
    if (block->writers || block->written >= begun)
        return; /* it was written meanwhile */
    const bool changed = !block->same_since || memcmp(&block->hash, hash, sizeof(*hash)) != 0;
    const bool explained = changed && is_explained(block, progress, last_hashed);
    if (!explained)
        gps_canary_note(area, block, last_hashed, begun, changed);
    if (changed) {
        progress->changed += progress->full && !explained;
        progress->rewritten += progress->full && explained;
        block->changed |= !explained && block->same_since && !profile->writes;
        block->hash = *hash;
        block->same_since = begun;
        profile->dirty = true;
    }
    profile->dirty |= progress->full != gps_profile_is_full(block);
    progress->full = gps_profile_is_full(block);
    if (stable)
        progress->stable = begun;
}

/* --- lines --- */

static uint64_t profile_ms_since(uint64_t began, uint64_t time) {
    return time > began ? (time - began) / MS : 0;
}

static void profile_begin_line(struct gps_text *text) {
    const struct gps_owner *self = gps_process_self();
    gps_text_add(text, "{\"process\":\"%u.%016lx\",\"program\":", self->pid, self->nonce);
    gps_text_json(text, gps_process_program()->name);
}

void gps_profile_process_line(uint64_t began, uint64_t looked, struct gps_text *text) {
    profile_begin_line(text);
    gps_text_add(text, ",\"looked\":%lu}\n", profile_ms_since(began, looked));
}

void gps_profile_created_line(uint64_t made, uint64_t watched, struct gps_text *text) {
    profile_begin_line(text);
    gps_text_add(text, ",\"created\":[%lu,%lu]}\n", made, watched);
}

void gps_profile_lacking_line(struct gps_text *text) {
    profile_begin_line(text);
    gps_text_str(text, ",\"lacking\":true}\n");
}

/* Sums up all blocks, or the full ones: bytes, since when unchanged, and how often changed. */
static void add_sums(struct gps_text *text, const struct gps_area *area, bool all, uint64_t began) {
    uint64_t bytes = 0, last = 0, now = gps_clock_monotonic(), changed = 0, rewritten = 0;
    for (unsigned i = 0; i < area->count; i++) {
        const struct gps_block *block = &area->blocks[i];
        if (!all && !gps_profile_is_full(block))
            continue;
        const uint64_t hashed = block->same_since ? block->same_since : now;
        last = hashed > last ? hashed : last;
        bytes += gps_profile_bytes(area, block);
        changed += gps_profile_progress(area, block)->changed;
        rewritten += gps_profile_progress(area, block)->rewritten;
    }
    gps_text_add(text, ",\"%s\":[%lu,%lu,%lu,%lu]", all ? "all" : "full", bytes,
                 profile_ms_since(began, last), changed, rewritten);
}

static void add_blocks(struct gps_text *text, const struct gps_area *area) {
    gps_text_str(text, ",\"blocks\":[");
    for (unsigned i = 0; i < area->count; i++) {
        const struct gps_block *block = &area->blocks[i];
        gps_text_add(text, "%s[%lu,%u,\"%016lx%016lx\"]", i ? "," : "",
                     gps_profile_bytes(area, block), (unsigned)gps_profile_is_full(block),
                     block->hash.high, block->hash.low);
    }
    gps_text_str(text, "]");
}

static void profile_add_rule(struct gps_text *text, const struct gps_profile *profile,
                             uint64_t began) {
    gps_text_add(text, ",\"rule\":[%u,%u,%u,%lu,%lu,", profile->rule->line,
                 (unsigned)profile->quiet, profile->writes,
                 profile_ms_since(began, profile->written), profile->was_quiet / MS);
    gps_text_json(text, profile->writer);
    gps_text_str(text, "]");
}

void gps_profile_line(const struct gps_area *area, uint64_t began, struct gps_text *text) {
    const struct gps_profile *profile = gps_profile_of(area);
    profile_begin_line(text);
    gps_text_add(text, ",\"number\":%lu,\"size\":%lu,\"thread\":%lu,\"caller\":", area->serial,
                 area->size, (unsigned long)profile->thread);
    gps_text_json(text, area->caller);
    gps_text_add(text, ",\"pool\":%s,\"vmm\":%s,\"born\":%lu,\"freed\":%lu",
                 profile->kind == GPS_PROFILE_POOL ? "true" : "false",
                 profile->kind == GPS_PROFILE_CREATED ? "true" : "false",
                 profile_ms_since(began, profile->born),
                 profile->freed ? profile_ms_since(began, profile->freed) + 1 : 0);
    add_sums(text, area, false, began);
    add_sums(text, area, true, began);
    add_blocks(text, area);
    if (profile->rule)
        profile_add_rule(text, profile, began);
    gps_text_str(text, "}\n");
}
