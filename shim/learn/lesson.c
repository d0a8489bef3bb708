/* lesson.c - see lesson.h. */
#include "lesson.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver/driver_ops.h"
#include "merge/block.h"
#include "process/caller.h"
#include "process/process.h"
#include "util/clock.h"

enum { MS = 1000000 };

struct gps_area *gps_lesson_new(uint64_t pointer, uint64_t size, bool pool) {
    const uint64_t whole = gps_area_extent(size);
    const unsigned count = pool ? 0 : gps_area_cut(0, whole, NULL);
    struct gps_area *area = calloc(1, sizeof(*area) + count * sizeof(area->blocks[0]));
    struct gps_lesson *lesson = calloc(1, sizeof(*lesson) + count * sizeof(lesson->progress[0]));
    if (!area || !lesson) {
        free(area);
        free(lesson);
        return NULL;
    }
    *area = (struct gps_area){
        .pointer = pointer, .size = size, .extent = size, .notes = lesson, .count = count};
    if (count)
        gps_area_cut(0, whole, area->blocks);
    for (unsigned i = 0; i < count; i++)
        gps_block_set_state(&area->blocks[i], GPS_BLOCK_PRIVATE);
    gps_ops->context(&area->context);
    gps_caller_name(area->caller, sizeof(area->caller));
    lesson->born = gps_clock_monotonic();
    lesson->thread = syscall(SYS_gettid);
    lesson->pool = pool;
    lesson->dirty = true;
    return area;
}

void gps_lesson_free(struct gps_area *area) {
    free(area->notes);
    free(area);
}

uint64_t gps_lesson_bytes(const struct gps_area *area, const struct gps_block *block) {
    const uint64_t left = area->size - block->at;
    return left < block->size ? left : block->size;
}

/* A copy can end a while after its call, unless the block was seen to be settled. */
static bool is_explained(const struct gps_block *block, const struct gps_progress *progress,
                         uint64_t last_look) {
    return block->written > progress->settled && block->written + GPS_SECOND > last_look;
}

void gps_lesson_note(struct gps_area *area, unsigned index, const struct gps_hash *hash,
                     uint64_t begun, bool settled) {
    struct gps_block *block = &area->blocks[index];
    struct gps_lesson *lesson = gps_lesson_of(area);
    struct gps_progress *progress = &lesson->progress[index];
    const uint64_t last_look = block->looked;
    block->looked = begun;
    if (block->writers || block->written >= begun)
        return; /* it was written meanwhile */
    if (!block->hashed || memcmp(&block->hash, hash, sizeof(*hash)) != 0) {
        const bool explained = is_explained(block, progress, last_look);
        progress->changed += progress->full && !explained;
        progress->rewritten += progress->full && explained;
        block->hash = *hash;
        block->hashed = begun;
        lesson->dirty = true;
    }
    lesson->dirty |= progress->full != gps_lesson_is_full(block);
    progress->full = gps_lesson_is_full(block);
    if (settled)
        progress->settled = begun;
}

/* --- lines --- */

static uint64_t since(uint64_t began, uint64_t time) {
    return time > began ? (time - began) / MS : 0;
}

static void begin_line(struct gps_text *text) {
    const struct gps_owner *self = gps_process_self();
    gps_text_add(text, "{\"process\":\"%u.%016lx\",\"program\":", self->pid, self->nonce);
    gps_text_json(text, gps_process_program()->name);
}

void gps_lesson_process_line(uint64_t began, uint64_t looked, struct gps_text *text) {
    begin_line(text);
    gps_text_add(text, ",\"looked\":%lu}\n", since(began, looked));
}

/* Of all blocks, or of the full ones: bytes, since when constant, and how often not. */
static void add_sums(struct gps_text *text, const struct gps_area *area, bool all, uint64_t began) {
    uint64_t bytes = 0, last = 0, now = gps_clock_monotonic(), changed = 0, rewritten = 0;
    for (unsigned i = 0; i < area->count; i++) {
        const struct gps_block *block = &area->blocks[i];
        if (!all && !gps_lesson_is_full(block))
            continue;
        const uint64_t hashed = block->hashed ? block->hashed : now;
        last = hashed > last ? hashed : last;
        bytes += gps_lesson_bytes(area, block);
        changed += gps_lesson_of(area)->progress[i].changed;
        rewritten += gps_lesson_of(area)->progress[i].rewritten;
    }
    gps_text_add(text, ",\"%s\":[%lu,%lu,%lu,%lu]", all ? "all" : "full", bytes, since(began, last),
                 changed, rewritten);
}

static void add_blocks(struct gps_text *text, const struct gps_area *area) {
    gps_text_str(text, ",\"blocks\":[");
    for (unsigned i = 0; i < area->count; i++) {
        const struct gps_block *block = &area->blocks[i];
        gps_text_add(text, "%s[%lu,%u,\"%016lx%016lx\"]", i ? "," : "",
                     gps_lesson_bytes(area, block), (unsigned)gps_lesson_is_full(block),
                     block->hash.high, block->hash.low);
    }
    gps_text_str(text, "]}\n");
}

void gps_lesson_line(const struct gps_area *area, uint64_t began, struct gps_text *text) {
    const struct gps_lesson *lesson = gps_lesson_of(area);
    begin_line(text);
    gps_text_add(text, ",\"number\":%lu,\"size\":%lu,\"thread\":%lu,\"caller\":", area->serial,
                 area->size, (unsigned long)lesson->thread);
    gps_text_json(text, area->caller);
    gps_text_add(text, ",\"pool\":%s,\"born\":%lu,\"freed\":%lu", lesson->pool ? "true" : "false",
                 since(began, lesson->born), lesson->freed ? since(began, lesson->freed) + 1 : 0);
    add_sums(text, area, false, began);
    add_sums(text, area, true, began);
    add_blocks(text, area);
}
