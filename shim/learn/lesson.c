/* lesson.c - see lesson.h. */
#include "lesson.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/caller.h"
#include "process/driver_ops.h"
#include "process/process.h"
#include "util/clock.h"

enum { BLOCKS = 512 /* of a line */, MS = 1000000 };

struct gps_area *gps_lesson_new(uint64_t pointer, uint64_t size, bool pool) {
    const uint64_t whole = (size + GPS_MERGE_SMALL - 1) / GPS_MERGE_SMALL * GPS_MERGE_SMALL;
    const unsigned count = pool ? 0 : gps_area_cut(whole, NULL);
    struct gps_area *area = calloc(1, sizeof(*area) + count * sizeof(area->blocks[0]));
    struct gps_lesson *lesson = calloc(1, sizeof(*lesson) + count * sizeof(lesson->progress[0]));
    if (!area || !lesson) {
        free(area);
        free(lesson);
        return NULL;
    }
    *area = (struct gps_area){
        .pointer = pointer, .size = size, .extent = size, .lesson = lesson, .count = count};
    if (count)
        gps_area_cut(whole, area->blocks);
    for (unsigned i = 0; i < count; i++)
        area->blocks[i].state = GPS_BLOCK_PRIVATE;
    gps_ops->context(&area->context);
    gps_ops->device(&area->device);
    gps_caller_name(area->caller, sizeof(area->caller));
    lesson->born = gps_clock_monotonic();
    lesson->thread = syscall(SYS_gettid);
    lesson->pool = pool;
    lesson->dirty = true;
    return area;
}

void gps_lesson_free(struct gps_area *area) {
    free(area->lesson);
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
    struct gps_progress *progress = &area->lesson->progress[index];
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
        area->lesson->dirty = true;
    }
    area->lesson->dirty |= progress->full != gps_lesson_is_full(block);
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
    gps_text_json(text, self->command);
}

void gps_lesson_process_line(uint64_t began, uint64_t looked, struct gps_text *text) {
    begin_line(text);
    gps_text_add(text, ",\"looked\":%lu}\n", since(began, looked));
}

static void add_block(struct gps_text *text, const struct gps_area *area, unsigned index,
                      uint64_t began) {
    const struct gps_block *block = &area->blocks[index];
    const struct gps_progress *progress = &area->lesson->progress[index];
    gps_text_add(text, "[%lu,%u,%lu,%u,%u,\"", gps_lesson_bytes(area, block),
                 (unsigned)gps_lesson_is_full(block), since(began, block->hashed),
                 progress->changed, progress->rewritten);
    if (block->hashed)
        gps_text_add(text, "%016lx%016lx", block->hash.high, block->hash.low);
    gps_text_str(text, "\"]");
}

void gps_lesson_line(const struct gps_area *area, uint64_t began, unsigned *at,
                     struct gps_text *text) {
    const struct gps_lesson *lesson = area->lesson;
    const unsigned first = *at, left = area->count - first;
    begin_line(text);
    gps_text_add(text, ",\"number\":%lu,\"size\":%lu,\"device\":%u,\"caller\":", area->serial,
                 area->size, (unsigned)area->device);
    gps_text_json(text, area->caller);
    gps_text_add(text, ",\"thread\":%lu,\"pool\":%u,\"born\":%lu,\"freed\":%lu,\"at\":%u",
                 (unsigned long)lesson->thread, (unsigned)lesson->pool, since(began, lesson->born),
                 lesson->freed ? since(began, lesson->freed) + 1 : 0, first);
    gps_text_str(text, ",\"blocks\":[");
    *at = first + (left < BLOCKS ? left : BLOCKS);
    for (unsigned i = first; i < *at; i++) {
        gps_text_str(text, i == first ? "" : ",");
        add_block(text, area, i, began);
    }
    gps_text_str(text, "]}\n");
}
