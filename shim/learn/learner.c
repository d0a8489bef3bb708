#include "learner.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "canary.h"
#include "digest/digest.h"
#include "directory/file.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "gate/swap.h"
#include "merge/created.h"
#include "profile.h"
#include "registry/vmm_books.h"
#include "threads/thread.h"
#include "util/clock.h"
#include "util/forgotten.h"

#define TURN    (GPS_SECOND / 2)
#define TIMEOUT (GPS_SECOND / 10) /* with a stream whose copy has filled a block */

enum { LEGACY = 1 /* the legacy stream: it must not be asked during a capture */ };
/* One part in SHARE of the time is to look; after a long look a rest is LONGEST at most. */
enum { BACKOFF = 6, SHARE = 10 };
#define LONGEST (4 * TURN)

bool gps_learn_active;
GPS_FORGOTTEN(gps_learn_active);

static struct {
    char path[GPS_CONFIG_PATH];
    uint64_t began, last_hashed;
    _Atomic bool running, stop, busy;  /* busy: looks at all, and writes */
    _Atomic bool lacks;                /* it has been written */
    _Atomic uint64_t created, watched; /* bytes of cuMemCreate, ever; and the sum as reported: */
    uint64_t told;
    struct gps_area *freed;         /* to be written; with the lock of area.h */
    uint8_t rest[GPS_DIGEST_CHUNK]; /* with gps_swap_lock */
    char line[GPS_PROFILE_LINE];
} state;
GPS_FORGOTTEN(state);

/* --- the report --- */

static void learn_file_append(const struct gps_text *text) {
    const int fd =
        open(state.path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
    if (fd < 0)
        return;
    gps_file_write(fd, text->bytes, text->length, 0);
    close(fd);
}

static void write_freed(void) {
    gps_area_lock();
    struct gps_area *area = state.freed;
    state.freed = NULL;
    gps_area_unlock();
    for (struct gps_area *next; area; area = next) {
        struct gps_text text = GPS_TEXT(state.line);
        next = gps_profile_of(area)->next;
        gps_profile_line(area, state.began, &text);
        learn_file_append(&text);
        gps_profile_free(area);
    }
}

/* Areas are written by address. One that is freed meanwhile is written with the freed ones. An area
 * that did not change gets no new line; the process's own line says until when it did not. */
static void write_areas(bool all) {
    struct gps_area *area;
    uint64_t at = 0;
    do {
        struct gps_text text = GPS_TEXT(state.line);
        gps_area_lock();
        area = gps_area_from(at);
        if (area && (all || gps_profile_of(area)->dirty)) {
            gps_profile_line(area, state.began, &text);
            gps_profile_of(area)->dirty = false;
        }
        at = area ? area->pointer + area->extent : 0;
        gps_area_unlock();
        if (text.length)
            learn_file_append(&text);
    } while (at);
    write_freed();
}

static void write_created(void) {
    struct gps_text text = GPS_TEXT(state.line);
    const uint64_t created = atomic_load(&state.created), watched = atomic_load(&state.watched);
    if (created + watched == state.told)
        return;
    state.told = created + watched;
    gps_profile_created_line(created, watched, &text);
    learn_file_append(&text);
}

static void write_report(bool all) {
    write_areas(all);
    write_created();
    struct gps_text text = GPS_TEXT(state.line);
    gps_profile_process_line(state.began, state.last_hashed, &text);
    learn_file_append(&text);
}

/* At once: it may be the program's end. */
void gps_learn_lacks(void) {
    char line[512];
    struct gps_text text = GPS_TEXT(line);
    if (atomic_exchange(&state.lacks, true))
        return;
    GPS_SCOPE();
    gps_profile_lacking_line(&text);
    learn_file_append(&text);
}

/* --- hashing a block, with gps_swap_lock --- */

/* Hashes what follows the last whole piece, without reading beyond the end of the allocation. */
static int hash_rest(uint64_t from, uint64_t size, struct gps_hash *hash) {
    int code = GPS_OK;
    for (uint64_t at = 0, part; code == GPS_OK && at < size; at += part) {
        part = size - at < sizeof(state.rest) ? size - at : sizeof(state.rest);
        memset(state.rest, 0, sizeof(state.rest));
        code = gps_ops->copy_out(state.rest, from + at, part);
        const struct gps_hash chunk = gps_digest_chunk(state.rest);
        hash->low = (hash->low << 1 | hash->low >> 63) ^ chunk.low;
        hash->high = (hash->high << 1 | hash->high >> 63) ^ chunk.high;
    }
    return code;
}

static bool hash_block(const struct gps_area *area, const struct gps_block *block,
                       struct gps_hash *hash) {
    const uint64_t from = area->pointer + block->at, size = gps_profile_bytes(area, block);
    const uint64_t whole = size / GPS_DIGEST_PIECE * GPS_DIGEST_PIECE;
    struct gps_digest digest = {0};
    struct gps_scope scope;
    int code = gps_scope_enter(&scope, area->context);
    if (code == GPS_OK && whole)
        code = gps_device_digest(from, whole, &digest);
    *hash = digest.hash;
    if (code == GPS_OK && whole < size)
        code = hash_rest(from + whole, size - whole, hash);
    gps_scope_end(&scope);
    return code == GPS_OK;
}

/* A copy may have cut it anew meanwhile. */
static void hash_and_note(struct gps_area *area, const struct gps_block *one, bool stable) {
    const uint64_t begun = gps_clock_monotonic();
    struct gps_area *found;
    struct gps_hash hash;
    const bool seen = hash_block(area, one, &hash);
    GPS_AREAS_LOCKED();
    struct gps_block *block = gps_area_block(area->pointer + one->at, area->serial, &found);
    if (!block || block->size != one->size)
        return;
    if (seen)
        gps_profile_note(area, block, &hash, begun, stable);
    else
        block->last_hashed = begun;
}

/* --- a turn --- */

/* A block that changes all the time is hashed ever more rarely, but where rules are checked: then
 * all that they take is looked at, and nothing else. */
static bool learner_block_is_due(const struct gps_area *area, const struct gps_block *block,
                                 uint64_t now) {
    const struct gps_progress *progress = gps_profile_progress(area, block);
    const unsigned changes = gps_canary_active ? 0 : progress->changed + progress->rewritten;
    if (gps_canary_active && !gps_profile_of(area)->rule)
        return false;
    return now - block->last_hashed >= (TURN / 2) << (changes < BACKOFF ? changes : BACKOFF);
}

/* Finds the next block from an address on, and stores its address in *cursor. */
static struct gps_area *next_due(uint64_t *cursor, struct gps_block *found, uint64_t now) {
    for (struct gps_area *area = gps_area_from(*cursor); area; area = gps_area_next(area))
        for (const struct gps_block *one = area->blocks; one < &area->blocks[area->count]; one++)
            if (area->pointer + one->at >= *cursor && learner_block_is_due(area, one, now)) {
                *cursor = area->pointer + one->at;
                *found = *one;
                return area;
            }
    return NULL;
}

static void learner_hash_all(uint64_t now) {
    struct gps_area *area = NULL;
    struct gps_block block;
    uint64_t cursor = 0;
    do {
        gps_swap_lock();
        gps_area_lock();
        area = next_due(&cursor, &block, now);
        gps_area_unlock();
        if (area)
            hash_and_note(area, &block, false);
        gps_swap_unlock();
        cursor++;
    } while (area && !state.stop);
}

static void learner_take_turn(void) {
    const uint64_t begun = gps_clock_monotonic();
    GPS_SCOPE();
    state.busy = true;
    write_areas(false); /* a program may be ended while it is looked at */
    if (!state.stop)
        learner_hash_all(begun);
    if (!state.stop) {
        state.last_hashed = begun;
        write_report(false);
    }
    state.busy = false;
}

static void *learner_run(void *unused) {
    prctl(PR_SET_NAME, "gpushare-learn");
    while (!state.stop) {
        const uint64_t begun = gps_clock_monotonic();
        learner_take_turn();
        const uint64_t rest = SHARE * (gps_clock_monotonic() - begun);
        usleep((useconds_t)((rest < TURN ? TURN : rest < LONGEST ? rest : LONGEST) / 1000));
    }
    return unused;
}

/* Waits for a turn under way, but not for a device that hangs. */
void gps_learn_end(void) {
    if (!gps_learn_active)
        return;
    state.stop = true;
    gps_thread_await(&state.busy, 2 * GPS_SECOND);
    if (!state.busy)
        write_report(true);
}

/* --- the life of an allocation --- */

/* The caller has gps_swap_lock and the lock of areas. */
static void retire(struct gps_area *area) {
    struct gps_profile *profile = gps_profile_of(area);
    gps_area_remove(area);
    profile->freed = gps_clock_monotonic();
    profile->next = state.freed;
    state.freed = area;
}

void gps_learn_unmapped(uint64_t pointer, uint64_t size) {
    if (!gps_area_near(pointer, size))
        return;
    GPS_SCOPE();
    gps_swap_lock();
    gps_area_lock();
    struct gps_area *area = gps_area_from(pointer), *next;
    for (; area && area->pointer < pointer + size; area = next) {
        next = gps_area_next(area);
        if (area->pointer >= pointer)
            retire(area);
    }
    gps_area_unlock();
    gps_swap_unlock();
}

void gps_learn_freed(uint64_t pointer) {
    if (gps_learn_active)
        gps_learn_unmapped(pointer, 1);
}

void gps_learn_purge(uint64_t context, uint64_t before) {
    struct gps_area *area;
    if (!gps_learn_active)
        return;
    GPS_AREAS_LOCKED();
    while ((area = gps_area_of_context(context, before)))
        retire(area);
}

/* With the first allocation, for a program mostly has launched nothing until then. */
static void learner_load_kernels(uint64_t context) {
    struct gps_scope scope;
    if (!gps_swap_try_lock())
        return;
    if (gps_scope_enter(&scope, context) == GPS_OK)
        gps_ops->load_kernels();
    gps_scope_end(&scope);
    gps_swap_unlock();
}

static void begin_to_look(void) {
    if (!atomic_exchange(&state.running, true) && !gps_thread_start(learner_run, NULL))
        state.running = false; /* the next one tries again */
}

void gps_learn_created(uint64_t size) {
    GPS_SCOPE();
    atomic_fetch_add(&state.created, size);
    begin_to_look();
}

static void learner_watch(uint64_t pointer, uint64_t size, enum gps_profile_kind kind) {
    GPS_SCOPE();
    const struct gps_rule *rule = gps_canary_active ? gps_canary_rule(size, kind) : NULL;
    struct gps_area *area = size < GPS_MERGE_LEAST ? NULL : gps_profile_new(pointer, size, kind);
    if (!area)
        return;
    gps_profile_of(area)->rule = rule;
    area->made = gps_streams_epoch;
    gps_area_lock();
    const bool first = !gps_area_of_context(area->context, UINT64_MAX);
    gps_area_add(area);
    gps_area_unlock();
    if (first)
        learner_load_kernels(area->context);
    begin_to_look();
}

void gps_learn_allocated(uint64_t pointer, uint64_t size, bool pool) {
    if (!gps_learn_active || (size < GPS_MERGE_LEAST && !gps_canary_active))
        return;
    gps_learn_freed(pointer); /* by a way that we do not see */
    learner_watch(pointer, size, pool ? GPS_PROFILE_POOL : GPS_PROFILE_ALLOCATED);
}

/* --- memory of cuMemCreate, while it is mapped --- */

/* As merge/created.h takes it. It is hashed in the current context, which is one of `device`. */
static bool is_watchable(const struct gps_vmm_mapping *mapping, const struct gps_vmm_memory *memory,
                         int device) {
    return memory->plain && memory->size <= GPS_CREATED_MOST && memory->mappings == 1 &&
           memory->size == mapping->size && device >= 0 && device == memory->device &&
           mapping->writable == UINT64_C(1) << device;
}

static bool is_watched(uint64_t pointer) {
    GPS_SCOPE();
    GPS_AREAS_LOCKED();
    const struct gps_area *area = gps_area_at(pointer);
    return area && area->pointer == pointer;
}

void gps_learn_mapped(uint64_t pointer, uint64_t size) {
    struct gps_vmm_mapping mapping;
    struct gps_vmm_memory memory;
    int device = -1;
    GPS_SCOPE();
    (void)gps_ops->device(&device); /* -1: there is no current context */
    for (uint64_t at = pointer, end = pointer + size;
         at < end && gps_vmm_mapping_from(at, &mapping, &memory) && mapping.pointer < end;
         at = mapping.pointer + mapping.size)
        if (!is_watchable(&mapping, &memory, device)) {
            gps_learn_unmapped(mapping.pointer, mapping.size);
        } else if (!is_watched(mapping.pointer)) {
            learner_watch(mapping.pointer, mapping.size, GPS_PROFILE_CREATED);
            atomic_fetch_add(&state.watched, mapping.size);
        }
}

/* --- a copy --- */

/* A stream that cannot be asked without harm is not waited for. */
static bool learner_wait_for(uint64_t stream) {
    const uint64_t until = gps_clock_monotonic() + TIMEOUT;
    if (stream == LEGACY || gps_stream_is_capturing(stream))
        return false;
    while (gps_ops->stream_state(stream) != GPS_OK) {
        if (gps_clock_monotonic() >= until)
            return false;
        usleep(50);
    }
    return true;
}

/* A copy whose call has returned may still be under way for some moments. */
static bool write_await(const struct gps_write *write) {
    if (write->ordered)
        return learner_wait_for(write->stream);
    usleep(200);
    return true;
}

static bool is_to_be_hashed(const struct gps_area *area, const struct gps_block *block,
                            uint64_t size) {
    return gps_profile_is_full(block) &&
           (size >= GPS_DIGEST_PIECE || !gps_profile_progress(area, block)->full);
}

/* Finds the next full block that the range touches, from a place in its area on. */
static struct gps_area *next_full(uint64_t to, uint64_t size, uint64_t at,
                                  struct gps_block *found) {
    unsigned first = 0, end = 0;
    GPS_AREAS_LOCKED();
    struct gps_area *area = gps_area_at(to);
    if (area)
        gps_area_blocks(area, to, size, &first, &end);
    while (first < end &&
           (area->blocks[first].at < at || !is_to_be_hashed(area, &area->blocks[first], size)))
        first++;
    if (first == end)
        return NULL;
    *found = area->blocks[first];
    return area;
}

static void hash_after(const struct gps_write *one) {
    struct gps_block block = {.at = 0};
    GPS_DRIVER_SCOPE();
    bool more = next_full(one->to, one->size, 0, &block) && write_await(one);
    for (uint64_t at = 0; more; at = block.at + block.size) {
        gps_swap_lock();
        struct gps_area *area = next_full(one->to, one->size, at, &block);
        if (area)
            hash_and_note(area, &block, true);
        gps_swap_unlock();
        more = area;
    }
}

static void note_begin(const struct gps_write *one) {
    const bool upload = gps_write_is_upload(one);
    const bool captured = one->ordered && gps_stream_is_capturing(one->stream);
    GPS_SCOPE();
    GPS_AREAS_LOCKED();
    struct gps_area *area = gps_area_at(one->to);
    if (area)
        gps_profile_write(area, one->to, one->size, upload, captured);
}

static void write_note_end(const struct gps_write *one) {
    GPS_SCOPE();
    GPS_AREAS_LOCKED();
    struct gps_area *area = gps_area_at(one->to);
    if (area)
        gps_area_write_ends(area, one->to, one->size);
}

/* The part of a write, from an address on, that goes into one area. False: there is no more. */
static bool next_part(const struct gps_write *one, uint64_t from, struct gps_write *part) {
    const uint64_t end = one->to + one->size;
    GPS_SCOPE();
    GPS_AREAS_LOCKED();
    const struct gps_area *area = gps_area_from(from);
    if (!area || area->pointer >= end)
        return false;
    const uint64_t last = area->pointer + area->extent;
    *part = *one;
    part->to = area->pointer > from ? area->pointer : from;
    part->size = (last < end ? last : end) - part->to;
    return true;
}

/* Mappings lie side by side, and copies go over several. */
static void each(const struct gps_write *write, void (*fn)(const struct gps_write *one)) {
    struct gps_write nth, part;
    for (uint64_t i = 0; i < gps_write_count(write); i++) {
        const struct gps_write *one = gps_write_nth(write, i, &nth);
        if (!one->size || !gps_area_near(one->to, one->size))
            continue;
        for (uint64_t at = one->to; at < one->to + one->size && next_part(one, at, &part);
             at = part.to + part.size)
            fn(&part);
    }
}

void gps_learn_begin_write(const struct gps_write *write) {
    each(write, note_begin);
}

void gps_learn_end_write(const struct gps_write *write) {
    each(write, write_note_end);
    if (write->kind != GPS_WRITE_OTHER)
        each(write, hash_after);
}

/* --- start --- */

void gps_learn_start(const struct gps_options *options) {
    const char *path = secure_getenv("GPUSHARE_LEARN");
    if (!path || options->mode != GPS_MODE_AUDIT || strlen(path) >= sizeof(state.path))
        return;
    strcpy(state.path, path);
    state.began = gps_clock_monotonic();
    gps_canary_start();
    gps_learn_active = true;
}
