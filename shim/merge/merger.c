/* merger.c - see merger.h. */
#include "merger.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "block.h"
#include "digest/look.h"
#include "gate/streams.h"
#include "keeper/keeper_client.h"
#include "process/driver_ops.h"
#include "process/scope.h"
#include "process/thread.h"
#include "shared_block.h"
#include "util/clock.h"

#define MS             UINT64_C(1000000)
#define PATIENCE_LEAST MS
#define PATIENCE_MOST  (20 * MS)
#define SOON           (20 * MS) /* between two looks while something is to be merged */
#define LATER          GPS_SECOND
#define SETTLED        (300 * MS) /* without a copy: a block that is filled but for gaps */
#define LOOK_LEAST     (100 * MS) /* between two looks at one block */

enum { BATCH = 32, FILLED_ENOUGH = 32 /* of 64 */, LOOKS = 8 /* while it is to be quiet */ };

/* A block that is to be merged. */
struct candidate {
    uint64_t serial; /* of its area */
    unsigned index;
    uint64_t pointer, context;
    const struct gps_rule *rule;
    struct gps_shared_key key;
    struct gps_id id;
    unsigned slot;
    int descriptor;        /* of its own memory, to be offered; -1 */
    uint64_t memory, view; /* of the shared block; 0: there is none yet */
    bool swapped;
};

static struct {
    pthread_mutex_t turn;    /* one batch at a time */
    pthread_mutex_t looking; /* kernels of ours read blocks, or blocks are swapped */
    _Atomic bool running, stop;
    _Atomic unsigned wakes; /* a futex */
    uint64_t patience, rest;
    struct candidate batch[BATCH];
    unsigned count;
} state = {.turn = PTHREAD_MUTEX_INITIALIZER, .looking = PTHREAD_MUTEX_INITIALIZER};

void gps_merger_lock(void) {
    pthread_mutex_lock(&state.looking);
}

void gps_merger_unlock(void) {
    pthread_mutex_unlock(&state.looking);
}

/* --- the gate --- */

static bool wait_for_idle(uint64_t until) {
    const struct timespec breath = {.tv_nsec = 50000};
    bool idle;
    while (!(idle = gps_streams_idle()) && gps_clock_monotonic() < until)
        nanosleep(&breath, NULL);
    return idle;
}

bool gps_merger_begin_swap(uint64_t patience) {
    const uint64_t until = gps_clock_monotonic() + patience;
    if (!gps_gate_close(patience))
        return false;
    if (wait_for_idle(until) && gps_gate_hold())
        return true;
    gps_gate_open();
    return false;
}

void gps_merger_end_swap(void) {
    gps_gate_open();
}

/* A device that is never idle is not disturbed for ever. */
static bool begin_swap(void) {
    const bool begun = gps_merger_begin_swap(state.patience);
    if (begun)
        state.patience = PATIENCE_LEAST;
    else if (state.patience < PATIENCE_MOST)
        state.patience *= 2;
    state.rest = begun ? 0 : 50 * state.patience;
    return begun;
}

/* --- which blocks --- */

static bool is_filled(const struct gps_area *area, const struct gps_block *block, uint64_t now) {
    const int filled = __builtin_popcountll(block->filled);
    if (area->rule->content == GPS_CONTENT_ANY)
        return true;
    if (filled == 64)
        return true;
    return filled >= FILLED_ENOUGH && now - block->written >= SETTLED;
}

static bool is_eligible(const struct gps_area *area, const struct gps_block *block, uint64_t now) {
    const uint64_t between = area->rule->quiet / LOOKS;
    if (block->state == GPS_BLOCK_FROZEN)
        return true;
    return block->state == GPS_BLOCK_PRIVATE && !block->fixed && !block->writers &&
           now - block->looked >= (between > LOOK_LEAST ? between : LOOK_LEAST) &&
           is_filled(area, block, now);
}

/* With the lock; notes the hash that it has now. True: it has had it for long enough. */
static bool is_quiet(const struct gps_area *area, struct gps_block *block,
                     const struct gps_digest *digest, uint64_t begun) {
    const uint64_t quiet = area->rule->quiet;
    if (block->state == GPS_BLOCK_FROZEN)
        return true;
    if (block->writers || block->written >= begun)
        return false;
    if (!block->hashed || memcmp(&block->hash, &digest->hash, sizeof(block->hash)) != 0) {
        block->hash = digest->hash;
        block->hashed = begun;
        return !quiet;
    }
    return begun - block->hashed >= quiet && begun - block->written >= quiet;
}

/* Hashes the block. True: it is a candidate. With `looking`, which keeps it where it is. */
static bool look_at(struct candidate *candidate) {
    struct gps_scope scope;
    struct gps_digest digest;
    const uint64_t begun = gps_clock_monotonic();
    int code = gps_scope_enter(&scope, candidate->context);
    if (code == GPS_OK)
        code = gps_look_digest(candidate->pointer, candidate->key.size, &digest);
    gps_scope_end(&scope);
    if (code != GPS_OK)
        return false;
    gps_area_lock();
    struct gps_area *area = gps_area_by_serial(candidate->serial);
    const bool quiet = area && is_quiet(area, &area->blocks[candidate->index], &digest, begun);
    gps_area_unlock();
    candidate->key.hash = digest.hash;
    candidate->key.sample = digest.sample;
    return quiet;
}

/* The next block from `serial` and `index` on that is worth a look. */
static bool next_block(uint64_t *pointer, unsigned index, uint64_t only,
                       struct candidate *candidate) {
    const uint64_t now = gps_clock_monotonic();
    bool found = false;
    gps_area_lock();
    struct gps_area *area = gps_area_at(*pointer);
    if (!area || area->pointer != *pointer) {
        const struct gps_area before = {.pointer = *pointer};
        area = gps_area_next(*pointer ? &before : NULL);
        index = 0;
    }
    for (; area && !found; area = found ? area : gps_area_next(area), index = found ? index : 0)
        for (; index < area->count && !found; index++) {
            struct gps_block *block = &area->blocks[index];
            if ((only && area->serial != only) || !is_eligible(area, block, now))
                continue;
            *candidate = (struct candidate){.serial = area->serial,
                                            .index = index,
                                            .pointer = area->pointer + block->at,
                                            .context = area->context,
                                            .rule = area->rule,
                                            .key.size = block->size,
                                            .slot = GPS_NO_SLOT,
                                            .descriptor = -1};
            memcpy(candidate->key.uuid, area->uuid, GPS_UUID_BYTES);
            block->looked = now;
            *pointer = area->pointer;
            found = true;
        }
    gps_area_unlock();
    return found;
}

/* --- preparing: the keeper is asked, and nothing of the program's is touched --- */

static void view_shared(struct candidate *candidate, int descriptor) {
    gps_area_lock();
    const struct gps_area *area = gps_area_by_serial(candidate->serial);
    if (area && gps_ops->block_import(descriptor, &candidate->memory) == GPS_OK &&
        gps_block_view(area, candidate->memory, candidate->key.size, &candidate->view) != GPS_OK) {
        gps_ops->block_release(candidate->memory);
        candidate->memory = 0;
    }
    gps_area_unlock();
}

static void export_own(struct candidate *candidate) {
    gps_area_lock();
    const struct gps_area *area = gps_area_by_serial(candidate->serial);
    if (area && gps_ops->block_export(area->blocks[candidate->index].memory,
                                      &candidate->descriptor) != GPS_OK)
        candidate->descriptor = -1;
    gps_area_unlock();
}

/* True: it can be swapped. */
static bool prepare(struct candidate *candidate) {
    struct gps_scope scope;
    int descriptor, status = -EIO;
    if (gps_scope_enter(&scope, candidate->context) == GPS_OK) {
        status = gps_shared_get(&candidate->key, &candidate->id, &descriptor, &candidate->slot);
        if (status == 0) {
            view_shared(candidate, descriptor);
            close(descriptor);
            if (!candidate->memory)
                gps_shared_release(&candidate->id, candidate->slot, false);
        } else if (status == -ENOENT) {
            export_own(candidate);
        }
    }
    gps_scope_end(&scope);
    return candidate->memory || candidate->descriptor >= 0;
}

/* --- swapping: behind the gate --- */

static struct gps_block *block_of(const struct candidate *candidate, struct gps_area **area) {
    *area = gps_area_by_serial(candidate->serial);
    return *area ? &(*area)->blocks[candidate->index] : NULL;
}

/* It still has the bytes that it was looked up by. */
static bool is_unchanged(const struct candidate *candidate) {
    struct gps_digest digest;
    bool equal;
    if (candidate->view && candidate->rule->verify == GPS_VERIFY_BYTES)
        return gps_look_equal(candidate->pointer, candidate->view, candidate->key.size, &equal) ==
                   GPS_OK &&
               equal;
    return gps_look_digest(candidate->pointer, candidate->key.size, &digest) == GPS_OK &&
           memcmp(&digest.hash, &candidate->key.hash, sizeof(digest.hash)) == 0;
}

static bool swap_one(struct candidate *candidate) {
    struct gps_area *area;
    struct gps_block *block = block_of(candidate, &area);
    if (!block || block->writers || block->fixed ||
        (block->state != GPS_BLOCK_PRIVATE && block->state != GPS_BLOCK_FROZEN))
        return false;
    if (block->state == GPS_BLOCK_PRIVATE && !is_unchanged(candidate))
        return false;
    if (!candidate->view)
        return block->state == GPS_BLOCK_FROZEN || gps_block_freeze(area, block) == GPS_OK;
    if (gps_block_replace(area, block, candidate->memory, false) != GPS_OK)
        return false;
    candidate->memory = 0;
    block->state = GPS_BLOCK_MERGED;
    block->owned = false;
    block->id = candidate->id;
    block->slot = candidate->slot;
    return true;
}

static void swap_batch(void) {
    struct gps_scope scope;
    gps_scope_enter(&scope, 0);
    if (begin_swap()) {
        const uint64_t until = gps_clock_monotonic() + GPS_MERGE_PAUSE;
        gps_area_lock();
        for (unsigned i = 0; i < state.count && gps_clock_monotonic() < until; i++) {
            struct candidate *candidate = &state.batch[i];
            if (gps_ops->enter(candidate->context) != GPS_OK)
                continue;
            candidate->swapped = swap_one(candidate);
            gps_ops->leave();
        }
        gps_area_unlock();
        gps_merger_end_swap();
    }
    gps_scope_end(&scope);
}

/* --- afterwards --- */

/* Its memory is frozen: nobody writes it any more, so it can be given away. */
static void offer(struct candidate *candidate) {
    struct gps_area *area;
    const int status = gps_shared_offer(&candidate->key, candidate->rule, candidate->descriptor,
                                        candidate->pointer, &candidate->id, &candidate->slot);
    gps_area_lock();
    struct gps_block *block = block_of(candidate, &area);
    if (block && block->state == GPS_BLOCK_FROZEN) {
        if (status == 0) {
            block->state = GPS_BLOCK_MERGED;
            block->owned = true;
            block->id = candidate->id;
            block->slot = candidate->slot;
        } else if (status != -EEXIST) {
            gps_block_thaw(area, block);
        }
    } else if (status == 0) {
        gps_shared_release(&candidate->id, candidate->slot, true);
    }
    gps_area_unlock();
}

static void finish(struct candidate *candidate) {
    struct gps_scope scope;
    gps_scope_enter(&scope, candidate->context);
    if (candidate->view)
        gps_block_unview(candidate->view, candidate->key.size);
    if (candidate->memory)
        gps_ops->block_release(candidate->memory);
    if (candidate->view && candidate->swapped)
        gps_shared_commit(&candidate->id, candidate->slot, false, candidate->pointer);
    else if (candidate->view)
        gps_shared_release(&candidate->id, candidate->slot, false);
    else if (candidate->swapped)
        offer(candidate);
    if (candidate->descriptor >= 0)
        close(candidate->descriptor);
    gps_scope_end(&scope);
}

static void merge_batch(void) {
    unsigned ready = 0;
    for (unsigned i = 0; i < state.count; i++)
        if (!gps_keeper_is_silent() && prepare(&state.batch[i]))
            state.batch[ready++] = state.batch[i];
    state.count = ready;
    if (!ready)
        return;
    gps_merger_lock();
    if (!state.stop)
        swap_batch();
    gps_merger_unlock();
    for (unsigned i = 0; i < state.count; i++)
        finish(&state.batch[i]);
}

/* --- a turn --- */

static bool look(struct candidate *candidate) {
    gps_merger_lock();
    const bool quiet = !state.stop && look_at(candidate);
    gps_merger_unlock();
    return quiet;
}

/* True: something was merged, or could have been. */
static bool take_turn(uint64_t only) {
    struct candidate candidate;
    uint64_t pointer = 0;
    unsigned index = 0;
    bool any = false;
    pthread_mutex_lock(&state.turn);
    state.count = 0;
    while (!state.stop && next_block(&pointer, index, only, &candidate)) {
        index = candidate.index + 1;
        if (look(&candidate))
            state.batch[state.count++] = candidate;
        any |= state.count > 0;
        if (state.count == BATCH) {
            merge_batch();
            state.count = 0;
        }
    }
    if (state.count)
        merge_batch();
    pthread_mutex_unlock(&state.turn);
    return any;
}

void gps_merger_run(uint64_t serial) {
    if (!gps_keeper_is_silent())
        take_turn(serial);
}

/* --- the thread --- */

static void sleep_for(uint64_t nanos, unsigned seen) {
    const struct timespec time = {.tv_sec = (time_t)(nanos / GPS_SECOND),
                                  .tv_nsec = (long)(nanos % GPS_SECOND)};
    syscall(SYS_futex, &state.wakes, FUTEX_WAIT_PRIVATE, seen, &time, NULL, 0);
}

static void *run(void *unused) {
    prctl(PR_SET_NAME, "gpushare-merge");
    while (!state.stop) {
        const unsigned seen = state.wakes;
        const bool any = !gps_keeper_is_silent() && take_turn(0);
        const uint64_t pause = any ? SOON : LATER;
        sleep_for(pause > state.rest ? pause : state.rest, seen);
    }
    return unused;
}

void gps_merger_wake(void) {
    state.wakes++;
    syscall(SYS_futex, &state.wakes, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    if (!atomic_exchange(&state.running, true)) {
        state.patience = PATIENCE_LEAST;
        if (!gps_thread_start(run, NULL))
            state.running = false; /* the next one tries again */
    }
}

/* After what is under way, which may be waiting for the keeper. */
void gps_merger_stop(void) {
    struct timespec until;
    state.stop = true;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    if (pthread_mutex_timedlock(&state.turn, &until) == 0)
        pthread_mutex_unlock(&state.turn);
    gps_merger_lock();
    gps_merger_unlock();
}

void gps_merger_reset(void) {
    memset((void *)&state, 0, sizeof(state));
}
