#include "merger.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "allocation.h"
#include "backing.h"
#include "block.h"
#include "candidate.h"
#include "created.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "gate/swap.h"
#include "keeper/keeper_client.h"
#include "layout.h"
#include "log/event_log.h"
#include "not_merging.h"
#include "own_bytes.h"
#include "shared_block.h"
#include "threads/thread.h"
#include "util/clock.h"
#include "util/forgotten.h"
#include "util/program_signals.h"
#include "writable.h"

#define TURN_20MS     (20 * GPS_MS)     /* between two turns while something is to be merged */
#define STALE_10S     (10 * GPS_SECOND) /* a batch or twin prepared so long ago is given up */
#define TURN_1S       GPS_SECOND
#define HASH_INTERVAL (100 * GPS_MS) /* between two hashes of one block */
#define ALL           UINT64_MAX
#define LULL_1S       GPS_SECOND        /* after a copy that ended within a 64th */
#define DOUBT_20S     (20 * GPS_SECOND) /* after the last sure block: those in doubt */
#define REASON_2S     (2 * GPS_SECOND)  /* a reason that lasts so long is told */
#define REASON_10S    (10 * GPS_SECOND) /* the same of captures */

enum {
    BATCH = 64,
    HASHES = 8, /* while a block is to be quiet */
};

/* Blocks that have memory twice for a while: of an allocation of cuMemCreate (created.h), and of an
 * area that is cut anew (layout.h). */
enum twin { PARTING, RELAYOUT, TWINS };

/* A step on a candidate's block behind the closed gate. */
typedef bool swap_fn(struct gps_candidate *candidate, struct gps_area *area,
                     struct gps_block *block);

static struct {
    _Atomic bool running, stop;
    _Atomic bool hold;                     /* until gps_merger_go_on the thread does nothing */
    _Atomic bool working;                  /* the thread takes a turn */
    _Atomic unsigned wakes;                /* a futex */
    _Atomic unsigned asked, answered;      /* turns that calls wait for */
    _Atomic uint64_t wanted;               /* the area of the next of them; ALL; 0: none waits */
    bool held;                             /* a device for RDMA keeps an area from being merged */
    uint64_t since[GPS_NOT_MERGING_COUNT]; /* each turn finds this reason; 0: it does not */
    uint64_t sure;                         /* when a block of no doubt was last frozen */
    struct gps_candidate batch[BATCH];
    unsigned count, swapped;     /* of it; so many are done */
    swap_fn *swap;               /* the batch is prepared for this; NULL: it is not */
    uint64_t prepared;           /* since when the batch, or a twin, is prepared */
    bool copied[TWINS];          /* the twin has its blocks, and is to be exchanged */
    _Atomic bool lacking;        /* an allocation failed for want of memory */
    _Atomic uint64_t duplicated; /* when a twin last had memory twice; UINT64_MAX: it has */
} state;
GPS_FORGOTTEN(state);

/* --- swaps --- */

/* Until end_swap the gate is closed, and the areas' lock held. False: the device is not idle. */
static bool begin_swap(void) {
    const uint64_t rest = gps_stall_wait() ? 0 : gps_stall_rest();
    if (rest)
        usleep((useconds_t)(rest / 1000 + 1));
    const bool begun = gps_stall_begin(&state.stop);
    if (begun)
        gps_area_lock();
    return begun;
}

static void end_swap(void) {
    gps_area_unlock();
    gps_stall_end();
}

/* --- devices for RDMA, and a pause --- */

static bool is_frozen_for_nothing(const struct gps_block *block) {
    return block->state == GPS_BLOCK_FROZEN && (block->excluded || gps_pause_is_on());
}

/* Excludes areas of rules that forbid RDMA. Returns how many froze for nothing. With the lock. */
static unsigned exclude_all(void) {
    unsigned frozen = 0;
    for (struct gps_area *area = gps_area_next(NULL); area; area = gps_area_next(area)) {
        const bool held = gps_area_merges(area) && gps_rdma_forbids(area->rule);
        state.held |= held;
        for (unsigned i = 0; i < area->count; i++) {
            area->blocks[i].excluded |= held;
            frozen += is_frozen_for_nothing(&area->blocks[i]);
        }
    }
    return frozen;
}

static void thaw_excluded(void) {
    const uint64_t until = gps_clock_monotonic() + GPS_SWAP_PAUSE;
    for (struct gps_area *area = gps_area_next(NULL); area; area = gps_area_next(area)) {
        if (gps_area_enter(area) != GPS_OK)
            continue;
        for (unsigned i = 0; i < area->count && gps_clock_monotonic() < until; i++)
            if (is_frozen_for_nothing(&area->blocks[i]))
                gps_block_thaw(area, &area->blocks[i]);
        gps_ops->leave();
    }
}

/* Looks in each turn: a program opens a device for RDMA before it registers memory with it. */
static void look_what_is_against_it(void) {
    gps_rdma_look();
    gps_plain_look();
    gps_pause_look();
    state.held = false;
    if (!gps_rdma_device() && !gps_pause_is_on())
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

static void swap_one(struct gps_candidate *candidate) {
    struct gps_area *area;
    struct gps_block *block = gps_candidate_block(candidate, &area);
    if (!block || gps_ops->enter(candidate->context) != GPS_OK)
        return;
    gps_ops->load_kernels();
    if (state.swap(candidate, area, block))
        block->swapped = gps_clock_monotonic();
    gps_ops->leave();
}

static void swap_for_a_moment(void) {
    const uint64_t until = gps_clock_monotonic() + GPS_SWAP_PAUSE;
    while (state.swapped < state.count && gps_clock_monotonic() < until)
        swap_one(&state.batch[state.swapped++]);
}

static bool is_stale(void) {
    return gps_clock_monotonic() - state.prepared >= STALE_10S;
}

/* Swaps what is left of the batch, in as many moments as that takes. False: some is to be done. */
static bool swap_batch(void) {
    while (state.swapped < state.count) {
        look_what_is_against_it();
        if (gps_pause_is_on() || state.hold)
            return true;
        if (!begin_swap())
            return state.stop || (!state.batch[0].since && is_stale());
        swap_for_a_moment();
        end_swap();
    }
    return true;
}

static bool finish_batch(void) {
    if (!state.swap)
        return true;
    if (!swap_batch())
        return false;
    for (unsigned i = 0; i < state.count; i++)
        gps_candidate_finish(&state.batch[i]);
    state.count = state.swapped = 0;
    state.swap = NULL;
    gps_merged_sum_log();
    return true;
}

static bool begin_batch(swap_fn *swap) {
    state.swap = swap;
    state.prepared = gps_clock_monotonic();
    return finish_batch();
}

/* A block that was written since it was looked at is not quiet. */
static bool freeze(struct gps_candidate *candidate, struct gps_area *area,
                   struct gps_block *block) {
    if (block->written >= candidate->looked)
        return false;
    if (candidate->sure)
        state.sure = gps_clock_monotonic();
    return gps_block_freeze(area, block) == GPS_OK;
}

static bool candidate_replace(struct gps_candidate *candidate, struct gps_area *area,
                              struct gps_block *block) {
    gps_shared_commit(&candidate->id, candidate->slot,
                      gps_shared_mark(candidate->key.uuid, candidate->key.size),
                      candidate->pointer);
    if (gps_block_replace(area, block, candidate->memory, false) != GPS_OK)
        return false;
    candidate->memory = 0;
    /* the keeper may have got this very memory from the offer that it did not answer */
    const uint64_t saved = block->state == GPS_BLOCK_UNANSWERED ? 0 : block->size;
    gps_block_set_state(block, GPS_BLOCK_SHARED);
    block->id = candidate->id;
    block->slot = candidate->slot;
    gps_merged_sum_merged(block->size, saved);
    return true;
}

/* --- which blocks --- */

/* Where copies touched each 64th, and none came for a while, the rest lies between tensors. */
static bool is_sure(const struct gps_block *block, uint64_t now) {
    return gps_block_is_full(block) || (!~block->filled && now - block->written >= LULL_1S);
}

/* Kernels most likely write bytes that copies left out, and bytes that were seen to change without
 * a copy. With `content = any` such blocks come last. Learned rules (quiet = 0) are sure of what
 * was uploaded, and of nothing else. */
static bool block_is_filled(const struct gps_area *area, const struct gps_block *block,
                            uint64_t now) {
    const uint64_t quiet = area->rule->quiet, wait = quiet < DOUBT_20S ? quiet : DOUBT_20S;
    if (quiet && area->rule->content == GPS_CONTENT_ANY)
        return is_sure(block, now) || now - state.sure >= wait;
    return !block->changed && is_sure(block, now);
}

/* A block written just now is not quiet, so not hashed: a program that loads is not disturbed. */
static bool block_hash_is_due(const struct gps_area *area, const struct gps_block *block,
                              uint64_t now) {
    const uint64_t quiet = area->rule->quiet, between = quiet / HASHES;
    const uint64_t last =
        quiet && block->written > block->last_hashed ? block->written : block->last_hashed;
    return now - last >= (between > HASH_INTERVAL ? between : HASH_INTERVAL);
}

static bool is_eligible(const struct gps_area *area, const struct gps_block *block, uint64_t now) {
    if (!gps_area_is_usable(area))
        return false;
    return (gps_block_is_frozen(block) && !block->excluded && !gps_layout_holds(area, block)) ||
           (block->state == GPS_BLOCK_PRIVATE && !area->freed && !block->excluded &&
            !block->writers && block_is_filled(area, block, now) &&
            block_hash_is_due(area, block, now));
}

/* A walk goes through the blocks by address. */
struct walk {
    uint64_t pointer; /* the area that is being looked at */
    unsigned index;   /* the next block of it */
    uint64_t only;    /* the serial of the one area; 0: all */
};

static struct gps_area *walk_area(struct walk *walk) {
    struct gps_area *area = gps_area_from(walk->pointer);
    if (area && area->pointer == walk->pointer && walk->index < area->count)
        return area;
    if (area && area->pointer <= walk->pointer)
        area = gps_area_next(area);
    walk->index = 0;
    walk->pointer = area ? area->pointer : UINT64_MAX;
    return area;
}

static void candidate_describe(const struct gps_area *area, const struct gps_block *block,
                               struct gps_candidate *candidate) {
    *candidate = (struct gps_candidate){.serial = area->serial,
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
    for (struct gps_area *area; !found && (area = walk_area(walk)); walk->index++) {
        struct gps_block *block = &area->blocks[walk->index];
        found = (!walk->only || walk->only == area->serial) &&
                gps_block_is_frozen(block) == frozen && is_eligible(area, block, now);
        if (found) {
            block->last_hashed = now;
            candidate_describe(area, block, candidate);
        }
    }
    return found;
}

/* Whether the block has had this hash for long enough. With quiet = 0 it needs none. */
static bool candidate_is_quiet(const struct gps_candidate *candidate, uint64_t begun) {
    struct gps_area *area;
    bool quiet = false;
    GPS_AREAS_LOCKED();
    struct gps_block *block = gps_candidate_block(candidate, &area);
    if (block && block->written < begun) {
        const bool same = block->same_since &&
                          memcmp(&block->hash, &candidate->key.hash, sizeof(block->hash)) == 0;
        block->changed |= !same && block->same_since && block->written < block->same_since;
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

/* Looks again during a turn, which may take long. */
static bool merger_turn_goes_on(void) {
    gps_pause_look();
    return !state.stop && !state.hold && !gps_pause_is_on();
}

/* Each step goes through all blocks. True: it found work. A batch not to be swapped now ends it. */
static bool freeze_quiet(uint64_t only) {
    struct walk walk = {.only = only};
    struct gps_candidate *next;
    bool any = false;
    while (merger_turn_goes_on() && next_block(&walk, false, next = &state.batch[state.count])) {
        next->looked = gps_clock_monotonic();
        if ((next->rule->quiet && !hash(next)) || !candidate_is_quiet(next, next->looked))
            continue;
        any = true;
        if (gps_created_is_to_part(next->pointer, next->serial))
            continue;
        if (++state.count == BATCH && !begin_batch(freeze))
            return true;
    }
    begin_batch(freeze);
    return any;
}

/* --- twins: memory twice until it is exchanged --- */

static const struct {
    bool (*next)(uint64_t only, bool again);
    bool (*copy)(void);
    void (*exchange)(void), (*end)(void);
} twins[] = {
    [PARTING] = {gps_parting_next, gps_parting_copy, gps_parting_exchange, gps_parting_end},
    [RELAYOUT] = {gps_layout_next, gps_layout_copy, gps_layout_exchange, gps_layout_end},
};

static bool copy_twin(enum twin twin) {
    state.duplicated = UINT64_MAX;
    state.prepared = gps_clock_monotonic();
    gps_swap_lock();
    state.copied[twin] = !state.stop && twins[twin].copy();
    gps_swap_unlock();
    return state.copied[twin];
}

static void end_twin(enum twin twin) {
    gps_swap_lock();
    twins[twin].end();
    gps_swap_unlock();
    state.copied[twin] = false;
    state.duplicated = gps_clock_monotonic();
}

/* Whether a twin is to be exchanged, and not given up. */
static bool may_exchange(void) {
    return !state.stop && !state.hold && !gps_pause_is_on() &&
           !atomic_exchange(&state.lacking, false);
}

/* False: the exchange is still to be done. */
static bool finish_twin(enum twin twin) {
    if (!state.copied[twin])
        return true;
    const bool wanted = may_exchange();
    if (wanted && begin_swap()) {
        twins[twin].exchange();
        end_swap();
    } else if (wanted && !is_stale()) {
        return false;
    }
    end_twin(twin);
    return true;
}

/* True: there were any. */
static bool exchange_twins(enum twin twin, uint64_t only) {
    bool any = false;
    while (merger_turn_goes_on() && twins[twin].next(only, any)) {
        any = true;
        if (!copy_twin(twin))
            end_twin(twin);
        else if (!finish_twin(twin))
            break;
    }
    return any;
}

bool gps_merger_reclaim(void) {
    const uint64_t begun = gps_clock_monotonic();
    state.lacking = state.duplicated == UINT64_MAX;
    if (state.lacking)
        gps_merger_wake();
    while (state.duplicated == UINT64_MAX && gps_clock_monotonic() - begun < GPS_SECOND)
        usleep(1000);
    return state.duplicated && begun < state.duplicated + GPS_SECOND;
}

static bool share_frozen(uint64_t only) {
    struct walk walk = {.only = only};
    struct gps_candidate *next;
    bool any = false;
    while (merger_turn_goes_on() && !gps_keeper_is_unresponsive() &&
           next_block(&walk, true, next = &state.batch[state.count])) {
        any = true;
        gps_own_bytes_turn();
        if (hash(next) && gps_candidate_share(next) && ++state.count == BATCH &&
            !begin_batch(candidate_replace))
            return true;
    }
    begin_batch(candidate_replace);
    return any;
}

/* --- why nothing is merged --- */

struct reason {
    enum gps_not_merging why;
    bool found;      /* in this turn */
    uint64_t within; /* a state that passes within this time is no reason */
};

static bool has_lasted(const struct reason *reason) {
    const uint64_t now = gps_clock_monotonic();
    uint64_t *since = &state.since[reason->why];
    *since = !reason->found ? 0 : *since ? *since : now;
    return *since && now - *since >= reason->within;
}

/* The first lasting reason counts. All are evaluated: each turn notes since when they last. */
static enum gps_not_merging find_reason(bool any) {
    struct gps_stream lost;
    const enum gps_not_merging refusal = gps_shared_refusal();
    const bool unkept = gps_keeper_is_unresponsive() || refusal == GPS_NOT_MERGING_KEEPER;
    const struct reason reasons[] = {
        {gps_pause_name() ? gps_pause_why() : GPS_NOT_MERGING_UNKNOWN, gps_pause_name(), 0},
        {GPS_NOT_MERGING_PAUSED, gps_pause_is_on(), 0},
        {GPS_NOT_MERGING_MEMBARRIER, gps_gate_is_refused(), 0},
        {GPS_NOT_MERGING_KEY, gps_shared_is_unusable(), REASON_2S},
        {GPS_NOT_MERGING_KEEPER, unkept, REASON_2S},
        {GPS_NOT_MERGING_CROWDED, refusal == GPS_NOT_MERGING_CROWDED, REASON_2S},
        {GPS_NOT_MERGING_DESCRIPTORS, refusal == GPS_NOT_MERGING_DESCRIPTORS, REASON_2S},
        {GPS_NOT_MERGING_FULL, refusal == GPS_NOT_MERGING_FULL, REASON_2S},
        {GPS_NOT_MERGING_RDMA, state.held, 0},
        {GPS_NOT_MERGING_MPS, gps_mps_has_forbidden(), 0},
        {GPS_NOT_MERGING_STREAMS, gps_streams_lost(&lost), REASON_2S},
        {GPS_NOT_MERGING_CAPTURE, gps_streams_any_capturing(), REASON_10S},
        {GPS_NOT_MERGING_BUSY, gps_stall_is_failing(), REASON_2S},
    };
    enum gps_not_merging why = (enum gps_not_merging)0;
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (has_lasted(&reasons[i]) && !why)
            why = reasons[i].why;
    return why == GPS_NOT_MERGING_BUSY && !any ? (enum gps_not_merging)0 : why;
}

/* --- a turn, and the calls that wait for it --- */

static void share_speculative(void) {
    const uint64_t until = gps_clock_monotonic() - LULL_1S;
    GPS_AREAS_LOCKED();
    for (struct gps_area *area = gps_area_next(NULL); area; area = gps_area_next(area))
        gps_merge_share_touched(area, until);
}

/* Ends freed areas and old events here, since the program may make no other call. The process may
 * have ended while this waited for the lock. */
static void end_what_is_over(void) {
    gps_swap_lock();
    if (!state.stop) {
        share_speculative();
        gps_streams_end_events();
        gps_merge_end_freed_locked();
    }
    gps_swap_unlock();
}

static bool merger_take_turn(uint64_t only) {
    bool any = false;
    GPS_DRIVER_SCOPE();
    const bool ready = gps_shared_ready();
    look_what_is_against_it();
    if (!finish_twin(PARTING) || !finish_twin(RELAYOUT) || !finish_batch()) {
        any = true;
    } else if (!state.stop && !gps_pause_is_on() && !gps_keeper_is_unresponsive() && ready) {
        any = freeze_quiet(only);
        if (!state.swap)
            exchange_twins(PARTING, only);
        const bool free = !state.swap && !state.copied[PARTING];
        any |= free && exchange_twins(RELAYOUT, only);
        any |= free && !state.copied[RELAYOUT] && share_frozen(only);
    }
    end_what_is_over();
    if (!state.stop)
        gps_not_merging_set(find_reason(any));
    return any;
}

/* Takes the turn that calls wait for, or one that goes through all areas. */
static bool take_wanted_turn(void) {
    const unsigned asked = state.asked;
    const uint64_t wanted = atomic_exchange(&state.wanted, 0);
    const bool any = merger_take_turn(wanted == ALL ? 0 : wanted);
    state.answered = asked;
    return any;
}

/* --- the thread --- */

static void sleep_for(uint64_t nanos, unsigned seen) {
    const struct timespec time = {.tv_sec = (time_t)(nanos / GPS_SECOND),
                                  .tv_nsec = (long)(nanos % GPS_SECOND)};
    syscall(SYS_futex, &state.wakes, FUTEX_WAIT_PRIVATE, seen, &time, NULL, 0);
}

/* A device that is never idle is disturbed ever more rarely. Blocks that cannot be shared now are
 * not hashed again at once. */
static uint64_t pause_after(bool any) {
    const uint64_t rest = gps_stall_wait();
    const uint64_t pause = any && !gps_shared_refusal() ? TURN_20MS : TURN_1S;
    return rest > pause ? rest : pause;
}

static uint64_t work(void) {
    gps_keeper_watch_turn(&state.stop);
    const uint64_t pause = pause_after(take_wanted_turn());
    gps_own_bytes_turn();
    return pause;
}

/* A turn goes through all areas. A program that loads wakes this thread after each copy, and turns
 * take no more than half of the time, but where a call waits for one. */
static void rest_after(uint64_t begun) {
    const uint64_t now = gps_clock_monotonic(), turn = now - begun;
    const uint64_t until = now + (turn < TURN_20MS ? turn : TURN_20MS);
    while (!state.wanted && !state.lacking && !state.stop && gps_clock_monotonic() < until)
        usleep(1000);
}

static void *merger_thread_run(void *unused) {
    prctl(PR_SET_NAME, "gpushare-merge");
    while (!state.stop) {
        const uint64_t begun = gps_clock_monotonic();
        const unsigned seen = state.wakes;
        uint64_t pause = TURN_1S;
        /* Set before `hold` and `stop` are read; gps_merger_hold and _stop set one, then read it */
        state.working = true;
        if (!state.hold && !state.stop)
            pause = work();
        state.working = false;
        rest_after(begun);
        sleep_for(pause, seen);
    }
    return unused;
}

void gps_merger_start(void) {
    if (state.running || atomic_exchange(&state.running, true))
        return;
    GPS_SCOPE();
    if (gps_thread_start(merger_thread_run, NULL))
        return;
    gps_not_merging_set(GPS_NOT_MERGING_THREAD);
    state.running = false; /* the next one tries again, or gps_merger_retry */
}

void gps_merger_wake(void) {
    state.wakes++;
    syscall(SYS_futex, &state.wakes, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void gps_merger_retry(void) {
    if (gps_not_merging_get() != GPS_NOT_MERGING_THREAD || state.running || state.stop)
        return;
    GPS_SCOPE();
    gps_merger_start();
}

/* Only the merger's thread takes turns, so no caller's lock is held while one awaits the keeper. */
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
        gps_program_signals_poll(NULL, GPS_MS / 10);
}

/* A turn that finds `hold` set ends soon. Then this thread gives up what that has prepared. */
bool gps_merger_hold(uint64_t timeout) {
    state.hold = true;
    gps_thread_await(&state.working, timeout);
    if (state.working)
        return false;
    GPS_DRIVER_SCOPE();
    finish_twin(PARTING);
    finish_twin(RELAYOUT);
    finish_batch();
    return true;
}

void gps_merger_go_on(void) {
    state.hold = false;
    if (state.running)
        gps_merger_wake();
}

/* The turn under way may be waiting for the keeper. */
void gps_merger_stop(void) {
    state.stop = true;
    gps_thread_await(&state.working, GPS_SECOND);
    gps_swap_await(GPS_SECOND);
    if (!state.working)
        gps_own_bytes_end();
    gps_merged_sum_log();
}
