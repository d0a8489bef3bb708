/* merger.c - see merger.h. */
#include "merger.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "allocation.h"
#include "block.h"
#include "candidate.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "gate/swap.h"
#include "keeper/keeper_client.h"
#include "keeper_watch.h"
#include "layout.h"
#include "log/merged_sum.h"
#include "rdma.h"
#include "shared_block.h"
#include "threads/thread.h"
#include "unmerged.h"
#include "util/clock.h"
#include "util/forgotten.h"
#include "util/program_signals.h"

#define MS            UINT64_C(1000000)
#define TIMEOUT_LEAST (MS / 2)
#define TIMEOUT_MORE  (3 * MS) /* what a request can bear */
#define TIMEOUT_MOST  (20 * MS)
#define SOON          (20 * MS) /* between two turns while something is to be merged */
#define LATER         GPS_SECOND
#define HASH_INTERVAL (100 * MS) /* between two hashes of one block */
#define ALL           UINT64_MAX
#define LULL          GPS_SECOND        /* after a copy that ended within a 64th */
#define DOUBT         (20 * GPS_SECOND) /* after the last sure block: those in doubt */
#define MOMENT        (2 * GPS_SECOND)  /* after it what is in the way is said to be */
#define LONG          (10 * GPS_SECOND) /* the same of captures */

enum { BATCH = 64, HASHES = 8 /* while a block is to be quiet */, RARE = 20 /* attempts */ };

static struct {
    _Atomic bool running, stop, busy;      /* busy: a turn is under way */
    _Atomic unsigned wakes;                /* a futex */
    _Atomic unsigned asked, answered;      /* turns that calls wait for */
    _Atomic uint64_t wanted;               /* the area of the next of them; ALL; 0: none waits */
    unsigned failures;                     /* attempts to swap that failed, one after the other */
    bool held;                             /* a device for RDMA keeps an area from being merged */
    uint64_t since[GPS_UNMERGED_RDMA + 1]; /* each turn finds this reason; 0: it does not */
    uint64_t sure;                         /* when a block of no doubt was last frozen */
    struct gps_candidate batch[BATCH];
    unsigned count;
    struct gps_relayout relayout;
    _Atomic uint64_t duplicated; /* when a relayout last had memory twice; UINT64_MAX: it has */
} state;
GPS_FORGOTTEN(state);

/* --- swaps --- */

static uint64_t timeout(void) {
    if (state.failures >= RARE)
        return TIMEOUT_MOST;
    const uint64_t grown = TIMEOUT_LEAST << (state.failures < 4 ? state.failures : 4);
    return grown < TIMEOUT_MORE ? grown : TIMEOUT_MORE;
}

/* Until end_swap the gate is closed, and this thread has the lock of areas. False: the device is
 * not idle. */
static bool begin_swap(void) {
    gps_swap_lock();
    const bool begun = !state.stop && gps_swap_begin(timeout());
    state.failures = begun ? 0 : state.failures + 1;
    if (begun)
        gps_area_lock();
    else
        gps_swap_unlock();
    return begun;
}

static void end_swap(void) {
    gps_area_unlock();
    gps_swap_end();
    gps_swap_unlock();
}

/* --- devices for RDMA --- */

static bool is_frozen_for_nothing(const struct gps_block *block) {
    return block->state == GPS_BLOCK_FROZEN && block->excluded;
}

/* Nothing of the areas is merged from now on. How many blocks are frozen for nothing. With the
 * lock. */
static unsigned exclude_all(void) {
    unsigned frozen = 0;
    for (struct gps_area *area = gps_area_next(NULL); area; area = gps_area_next(area)) {
        const bool held = gps_rdma_forbids(area->rule);
        state.held |= held;
        for (unsigned i = 0; i < area->count; i++) {
            area->blocks[i].excluded |= held;
            frozen += is_frozen_for_nothing(&area->blocks[i]);
        }
    }
    return frozen;
}

static void thaw_excluded(void) {
    const uint64_t until = gps_clock_monotonic() + GPS_MERGE_PAUSE;
    for (struct gps_area *area = gps_area_next(NULL); area; area = gps_area_next(area)) {
        if (gps_ops->enter(area->context) != GPS_OK)
            continue;
        for (unsigned i = 0; i < area->count && gps_clock_monotonic() < until; i++)
            if (is_frozen_for_nothing(&area->blocks[i]))
                gps_block_thaw(area, &area->blocks[i]);
        gps_ops->leave();
    }
}

/* A program opens such a device before it registers memory with it. */
static void look_for_devices(void) {
    gps_rdma_look();
    state.held = false;
    if (!gps_rdma_device())
        return;
    gps_area_lock();
    const unsigned frozen = exclude_all();
    gps_area_unlock();
    if (frozen && begin_swap()) {
        thaw_excluded();
        end_swap();
    }
}

/* --- batches --- */

/* Calls fn for as many of the batch as there is time for. */
static void swap_batch(bool (*fn)(struct gps_candidate *candidate, struct gps_area *area,
                                  struct gps_block *block)) {
    struct gps_area *area;
    if (state.count)
        look_for_devices();
    if (!state.count || !begin_swap())
        return;
    const uint64_t until = gps_clock_monotonic() + GPS_MERGE_PAUSE;
    for (unsigned i = 0; i < state.count && gps_clock_monotonic() < until; i++) {
        struct gps_block *block = gps_candidate_block(&state.batch[i], &area);
        if (!block || gps_ops->enter(state.batch[i].context) != GPS_OK)
            continue;
        if (fn(&state.batch[i], area, block))
            block->swapped = gps_clock_monotonic();
        gps_ops->leave();
    }
    end_swap();
}

static bool freeze(struct gps_candidate *candidate, struct gps_area *area,
                   struct gps_block *block) {
    if (candidate->sure)
        state.sure = gps_clock_monotonic();
    return gps_block_freeze(area, block) == GPS_OK;
}

static bool replace(struct gps_candidate *candidate, struct gps_area *area,
                    struct gps_block *block) {
    if (gps_block_replace(area, block, candidate->memory, false) != GPS_OK)
        return false;
    candidate->memory = 0;
    /* the keeper may have got this very memory from the offer that it did not answer */
    const uint64_t saved = block->state == GPS_BLOCK_UNANSWERED ? 0 : block->size;
    gps_block_set_state(block, GPS_BLOCK_SHARED);
    block->id = candidate->id;
    block->slot = candidate->slot;
    gps_shared_commit(&block->id, block->slot, false, candidate->pointer);
    gps_merged_sum_merged(block->size, saved);
    return true;
}

/* --- which blocks --- */

/* Where copies touched each 64th, and nothing came for a while, the rest is between tensors. */
static bool is_sure(const struct gps_block *block, uint64_t now) {
    return gps_block_is_full(block) || (!~block->filled && now - block->written >= LULL);
}

/* Learned rules (quiet = 0) are sure of what was uploaded, and of nothing else. */
static bool is_filled(const struct gps_area *area, const struct gps_block *block, uint64_t now) {
    const uint64_t quiet = area->rule->quiet, wait = quiet < DOUBT ? quiet : DOUBT;
    if (is_sure(block, now))
        return true;
    return quiet && now - state.sure >= wait &&
           (area->rule->content == GPS_CONTENT_ANY || __builtin_popcountll(block->filled) >= 32);
}

/* A block that was written just now is not quiet, so it is not hashed: a program that loads is not
 * disturbed. */
static bool is_due(const struct gps_area *area, const struct gps_block *block, uint64_t now) {
    const uint64_t quiet = area->rule->quiet, between = quiet / HASHES;
    const uint64_t last =
        quiet && block->written > block->last_hashed ? block->written : block->last_hashed;
    return now - last >= (between > HASH_INTERVAL ? between : HASH_INTERVAL);
}

static bool is_eligible(const struct gps_area *area, const struct gps_block *block, uint64_t now) {
    return (gps_block_is_frozen(block) && !block->excluded && !gps_layout_holds(area, block)) ||
           (block->state == GPS_BLOCK_PRIVATE && !area->freed && !block->excluded &&
            !block->writers && is_filled(area, block, now) && is_due(area, block, now));
}

/* A walk goes through the blocks by address. */
struct walk {
    uint64_t pointer; /* the area that is being looked at */
    unsigned index;   /* the next block of it */
    uint64_t only;    /* the serial of the one area; 0: all */
};

static struct gps_area *area_of(struct walk *walk) {
    struct gps_area *area = gps_area_at(walk->pointer);
    if (area && area->pointer == walk->pointer && walk->index < area->count)
        return area;
    const struct gps_area before = {.pointer = walk->pointer};
    walk->index = 0;
    area = gps_area_next(walk->pointer ? &before : NULL);
    walk->pointer = area ? area->pointer : UINT64_MAX;
    return area;
}

static void describe(const struct gps_area *area, const struct gps_block *block,
                     struct gps_candidate *candidate) {
    *candidate = (struct gps_candidate){.serial = area->serial,
                                        .at = block->at,
                                        .pointer = area->pointer + block->at,
                                        .context = area->context,
                                        .since = gps_block_is_frozen(block) ? block->swapped : 0,
                                        .rule = area->rule,
                                        .sure = !~block->filled,
                                        .key.size = block->size,
                                        .slot = GPS_NO_SLOT};
    memcpy(candidate->key.uuid, area->uuid, GPS_UUID_BYTES);
}

static bool next_block(struct walk *walk, bool frozen, struct gps_candidate *candidate) {
    bool found = false;
    GPS_AREAS_LOCKED();
    const uint64_t now = gps_clock_monotonic(); /* after all that was written */
    for (struct gps_area *area; !found && (area = area_of(walk)); walk->index++) {
        struct gps_block *block = &area->blocks[walk->index];
        found = (!walk->only || walk->only == area->serial) &&
                gps_block_is_frozen(block) == frozen && is_eligible(area, block, now);
        if (found) {
            block->last_hashed = now;
            describe(area, block, candidate);
        }
    }
    return found;
}

/* Whether the block has had this hash for long enough. */
static bool is_quiet(const struct gps_candidate *candidate, uint64_t begun) {
    struct gps_area *area;
    bool quiet = false;
    GPS_AREAS_LOCKED();
    struct gps_block *block = gps_candidate_block(candidate, &area);
    if (block && block->written < begun) {
        const bool same = block->same_since &&
                          memcmp(&block->hash, &candidate->key.hash, sizeof(block->hash)) == 0;
        block->same_since = same ? block->same_since : begun;
        block->hash = candidate->key.hash;
        quiet = begun - block->same_since >= area->rule->quiet &&
                begun - block->written >= area->rule->quiet;
    }
    return quiet;
}

static bool hash(struct gps_candidate *candidate) {
    gps_swap_lock();
    const bool read = !state.stop && gps_candidate_hash(candidate);
    gps_swap_unlock();
    return read;
}

/* --- a turn --- */

static void freeze_batch(void) {
    swap_batch(freeze);
    state.count = 0;
}

static void replace_batch(void) {
    swap_batch(replace);
    for (unsigned i = 0; i < state.count; i++)
        gps_candidate_finish(&state.batch[i]);
    state.count = 0;
    gps_merged_sum_log();
}

/* Each of these steps goes through all blocks. True: it found something to do. */
static bool freeze_quiet(uint64_t only) {
    struct gps_candidate *next = state.batch;
    struct walk walk = {.only = only};
    bool any = false;
    while (!state.stop && next_block(&walk, false, next)) {
        const uint64_t begun = gps_clock_monotonic();
        if (!hash(next) || !is_quiet(next, begun))
            continue;
        any = true;
        if (++state.count == BATCH)
            freeze_batch();
        next = &state.batch[state.count];
    }
    freeze_batch();
    return any;
}

static bool cut_frozen(uint64_t only) {
    bool any = false;
    state.relayout.pointer = 0;
    while (!state.stop && gps_layout_next(only, &state.relayout)) {
        any = true;
        state.duplicated = UINT64_MAX;
        gps_swap_lock();
        const bool copied = !state.stop && gps_layout_copy(&state.relayout);
        gps_swap_unlock();
        if (copied && begin_swap()) {
            gps_layout_exchange(&state.relayout);
            end_swap();
        }
        gps_layout_end(&state.relayout);
        state.duplicated = gps_clock_monotonic();
    }
    return any;
}

bool gps_merger_reclaim(void) {
    const uint64_t begun = gps_clock_monotonic();
    while (state.duplicated == UINT64_MAX && gps_clock_monotonic() - begun < GPS_SECOND)
        usleep(1000);
    return state.duplicated && begun < state.duplicated + GPS_SECOND;
}

static bool share_frozen(uint64_t only) {
    struct gps_candidate *next = state.batch;
    struct walk walk = {.only = only};
    bool any = false;
    while (!state.stop && !gps_keeper_is_unresponsive() && next_block(&walk, true, next)) {
        any = true;
        if (!hash(next) || !gps_candidate_share(next))
            continue;
        if (++state.count == BATCH)
            replace_batch();
        next = &state.batch[state.count];
    }
    replace_batch();
    return any;
}

/* --- why nothing is merged --- */

struct reason {
    enum gps_unmerged why;
    bool found;      /* in this turn */
    uint64_t within; /* what has passed by then is no reason */
};

static bool has_lasted(const struct reason *reason) {
    const uint64_t now = gps_clock_monotonic();
    uint64_t *since = &state.since[reason->why];
    *since = !reason->found ? 0 : *since ? *since : now;
    return *since && now - *since >= reason->within;
}

/* The first of them counts. All are looked at, for each turn says since when they last. */
static enum gps_unmerged find_reason(bool any) {
    struct gps_stream lost;
    const bool unkept = gps_keeper_is_unresponsive() || gps_shared_is_refused();
    const struct reason reasons[] = {
        {GPS_UNMERGED_MEMBARRIER, gps_gate_is_refused(), 0},
        {GPS_UNMERGED_KEY, gps_shared_is_unusable(), MOMENT},
        {GPS_UNMERGED_KEEPER, unkept, MOMENT},
        {GPS_UNMERGED_RDMA, state.held, 0},
        {GPS_UNMERGED_STREAMS, gps_streams_lost(&lost), MOMENT},
        {GPS_UNMERGED_CAPTURE, gps_streams_capturing(), LONG},
        {GPS_UNMERGED_BUSY, state.failures >= RARE, MOMENT},
    };
    enum gps_unmerged why = (enum gps_unmerged)0;
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (has_lasted(&reasons[i]) && !why)
            why = reasons[i].why;
    return why == GPS_UNMERGED_BUSY && !any ? (enum gps_unmerged)0 : why;
}

/* --- a turn, and who asks for it --- */

static void share_speculative(void) {
    const uint64_t until = gps_clock_monotonic() - LULL;
    GPS_AREAS_LOCKED();
    for (struct gps_area *area = gps_area_next(NULL); area; area = gps_area_next(area))
        gps_merge_share_touched(area, until);
}

/* The program may make no other call. The process may have ended while this waited for the lock. */
static void end_what_is_over(void) {
    gps_swap_lock();
    if (!state.stop) {
        share_speculative();
        gps_streams_end_events();
        gps_merge_end_freed_locked();
    }
    gps_swap_unlock();
}

static bool take_turn(uint64_t only) {
    bool any = false;
    GPS_DRIVER_SCOPE();
    state.busy = true;
    const bool ready = gps_shared_ready();
    look_for_devices();
    if (!state.stop && !gps_keeper_is_unresponsive() && ready) {
        any = freeze_quiet(only);
        any |= cut_frozen(only);
        any |= share_frozen(only);
    }
    end_what_is_over();
    if (!state.stop)
        gps_unmerged_set(find_reason(any));
    state.busy = false;
    return any;
}

/* Takes the turn that calls wait for, or one that goes through all areas. */
static bool take_wanted_turn(void) {
    const unsigned asked = state.asked;
    const uint64_t wanted = atomic_exchange(&state.wanted, 0);
    const bool any = take_turn(wanted == ALL ? 0 : wanted);
    state.answered = asked;
    return any;
}

/* --- the thread --- */

static void sleep_for(uint64_t nanos, unsigned seen) {
    const struct timespec time = {.tv_sec = (time_t)(nanos / GPS_SECOND),
                                  .tv_nsec = (long)(nanos % GPS_SECOND)};
    syscall(SYS_futex, &state.wakes, FUTEX_WAIT_PRIVATE, seen, &time, NULL, 0);
}

/* A device that is never idle is disturbed ever more rarely. */
static uint64_t pause_after(bool any) {
    const uint64_t rest = state.failures ? 50 * timeout() : 0;
    const uint64_t pause = any ? SOON : LATER;
    return rest > pause ? rest : pause;
}

static void *run(void *unused) {
    prctl(PR_SET_NAME, "gpushare-merge");
    while (!state.stop) {
        const unsigned seen = state.wakes;
        gps_keeper_watch_turn();
        sleep_for(pause_after(take_wanted_turn()), seen);
    }
    return unused;
}

void gps_merger_wake(void) {
    state.wakes++;
    syscall(SYS_futex, &state.wakes, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    if (atomic_exchange(&state.running, true))
        return;
    GPS_SCOPE();
    if (gps_thread_start(run, NULL))
        return;
    gps_unmerged_set(GPS_UNMERGED_THREAD);
    state.running = false; /* the next one tries again, or gps_merger_retry */
}

void gps_merger_retry(void) {
    if (gps_unmerged_get() != GPS_UNMERGED_THREAD || state.running || state.stop)
        return;
    GPS_SCOPE();
    gps_merger_wake();
}

/* Only the thread takes turns. So no lock is held in a turn, which may wait for the keeper. */
void gps_merger_run(uint64_t serial) {
    const uint64_t until = gps_clock_monotonic() + GPS_SECOND;
    uint64_t none = 0;
    GPS_SCOPE();
    if (!atomic_compare_exchange_strong(&state.wanted, &none, serial))
        state.wanted = ALL;
    const unsigned asked = atomic_fetch_add(&state.asked, 1) + 1;
    gps_merger_wake();
    while ((int)(state.answered - asked) < 0 && state.running && !state.stop &&
           gps_clock_monotonic() < until)
        gps_program_signals_poll(NULL, MS / 10);
}

/* The turn under way may be waiting for the keeper. */
void gps_merger_stop(void) {
    state.stop = true;
    gps_thread_await(&state.busy, GPS_SECOND);
    gps_swap_await(GPS_SECOND);
    gps_merged_sum_log();
}
