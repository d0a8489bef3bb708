#include "swap.h"

#include <string.h>
#include <time.h>

#include "util/clock.h"
#include "util/forgotten.h"

#define IDLE_20MS    (20 * GPS_MS) /* until the device is idle */
#define LOCK_2MS     (2 * GPS_MS)  /* until gps_swap_lock is free */
#define EMPTY_500US  (GPS_MS / 2)  /* how long work may wait whose stream is empty: at first, */
#define EMPTY_6MS    (6 * GPS_MS)  /* and at most, after stalls that failed for that */
#define WINDOW_200MS (200 * GPS_MS)
#define BUDGET_4MS   (4 * GPS_MS) /* of a window */
#define LOOK_NS      50000        /* ns between two looks */
#define RETRY_25MS   (25 * GPS_MS)
#define RETRY_200MS  (200 * GPS_MS)

enum {
    LATEST = 16,
    RARE = 20, /* failures, after which stalls are rare */
};

/* A stream that was busy when a stall failed. */
struct slow {
    struct gps_stream of;
    uint64_t takes; /* to become empty, in the worst of the last stalls */
};

static struct {
    struct slow slow[GPS_GATE_KEPT]; /* the longest first */
    unsigned slows;
    /* The stall under way: when it began, since when work waits for nothing, and since when the
     * device is idle. */
    uint64_t begun, empty, idle;
    uint64_t patience; /* how long work may wait for nothing: as learnt from the last stalls */
    struct {
        uint64_t ended, took;
    } waits[LATEST]; /* in the last stalls: while the device was idle, or else a stream */
    unsigned waited;
    unsigned failures;     /* in a row */
    uint64_t failed, cost; /* when the last did, and how long it took */
} state;
GPS_FORGOTTEN(state);

/* --- how often --- */

/* How long until the waits in vain within a window are few enough for another stall. More than
 * LATEST waits count as the oldest of them. */
uint64_t gps_stall_rest(void) {
    const uint64_t now = gps_clock_monotonic();
    uint64_t sum = GPS_SWAP_PAUSE;
    for (unsigned i = 0; i < LATEST; i++) {
        const unsigned at = (state.waited - 1 - i) % LATEST;
        sum += state.waits[at].took;
        if (state.waits[at].ended && now - state.waits[at].ended < WINDOW_200MS &&
            (sum > BUDGET_4MS || i == LATEST - 1))
            return state.waits[at].ended + WINDOW_200MS - now;
    }
    return 0;
}

uint64_t gps_stall_wait(void) {
    const uint64_t since = gps_clock_monotonic() - state.failed;
    uint64_t pause = 2 * state.cost;
    if (!state.failures)
        return 0;
    if (gps_stall_is_failing())
        pause = GPS_SECOND;
    else
        pause = pause < RETRY_25MS ? RETRY_25MS : pause < RETRY_200MS ? pause : RETRY_200MS;
    return since < pause ? pause - since : 0;
}

bool gps_stall_is_failing(void) {
    return state.failures >= RARE;
}

static void note_wait(uint64_t since) {
    const uint64_t now = gps_clock_monotonic();
    state.waits[state.waited % LATEST].ended = now;
    state.waits[state.waited % LATEST].took = now - since;
    state.waited++;
}

/* --- streams that are slow --- */

static unsigned find_slow(const struct gps_stream *of) {
    unsigned at = 0;
    while (at < state.slows && memcmp(&state.slow[at].of, of, sizeof(*of)) != 0)
        at++;
    return at;
}

/* The place of a new stream: behind the noted ones, or the last one's. */
static unsigned add_slow(const struct gps_stream *of) {
    if (state.slows < GPS_GATE_KEPT)
        state.slows++;
    state.slow[state.slows - 1] = (struct slow){.of = *of};
    return state.slows - 1;
}

/* A stream's time counts ever less as it ages. The work behind an event ends, and none follows. */
static void note_slow(const struct gps_stream *of, uint64_t took) {
    if (of->event)
        return;
    unsigned at = find_slow(of);
    if (at == state.slows)
        at = add_slow(of);
    const uint64_t before = state.slow[at].takes / 8 * 7;
    const struct slow one = {.of = *of, .takes = took > before ? took : before};
    for (; at > 0 && state.slow[at - 1].takes < one.takes; at--)
        state.slow[at] = state.slow[at - 1];
    state.slow[at] = one;
}

/* --- a stall --- */

static void pause_for_a_look(void) {
    const struct timespec interval = {.tv_nsec = LOOK_NS};
    nanosleep(&interval, NULL);
}

/* Work waits whose stream is empty, or a thread waits for the lock that this one takes. */
static bool waits_for_nothing(void) {
    struct gps_gate_stream held;
    unsigned n = 0;
    if (gps_swap_is_wanted_since(state.begun))
        return true;
    while (gps_gate_next_stalled(&n, state.begun, &held))
        if (!gps_streams_is_stalled_busy(&held))
            return true;
    return false;
}

/* With gps_swap_lock: whether the stall is to be given up. */
static bool stall_is_over(const _Atomic bool *stop) {
    const uint64_t now = gps_clock_monotonic();
    if (*stop || gps_streams_any_capturing() || now - state.begun >= IDLE_20MS)
        return true;
    if (!state.empty && waits_for_nothing())
        state.empty = now;
    return state.empty && now - state.empty >= state.patience;
}

/* Waits until this stream is empty. False: the stall is over. */
static bool drain_one(const struct gps_stream *of, const _Atomic bool *stop) {
    const uint64_t begun = gps_clock_monotonic();
    bool over = false, busy = true;
    while (busy && !over && gps_swap_lock_within(LOCK_2MS)) {
        busy = !*stop && gps_streams_is_busy(of);
        over = *stop || (busy && stall_is_over(stop));
        gps_swap_unlock();
        if (busy)
            pause_for_a_look();
    }
    note_slow(of, gps_clock_monotonic() - begun);
    return !busy && !over;
}

/* Stalls the work of slow streams, one stream more at a time. */
static bool drain_slow(const _Atomic bool *stop) {
    struct slow slow[GPS_GATE_KEPT];
    struct gps_gate_stream kept[GPS_GATE_KEPT];
    const unsigned count = state.slows;
    memcpy(slow, state.slow, sizeof(slow));
    for (unsigned i = 0; i < count; i++) {
        kept[i] = (struct gps_gate_stream){slow[i].of.stream, slow[i].of.context};
        gps_gate_keep_out(kept, i + 1);
        if (!drain_one(&slow[i].of, stop))
            return false;
    }
    return true;
}

/* Whether the device is idle. With gps_swap_lock and the gate shut. */
static enum gps_streams_answer stall_look(struct gps_stream *busy) {
    if (!gps_gate_is_empty() || gps_streams_any_capturing())
        return GPS_STREAMS_BUSY;
    return gps_streams_look(0, busy);
}

/* Stalls all work. */
static bool drain_all(const _Atomic bool *stop) {
    const uint64_t begun = gps_clock_monotonic();
    struct gps_stream busy = {.context = 0};
    enum gps_streams_answer answer;
    gps_gate_shut(false);
    while ((answer = stall_look(&busy)) == GPS_STREAMS_BUSY && !stall_is_over(stop))
        pause_for_a_look();
    if (answer == GPS_STREAMS_BUSY && busy.context)
        note_slow(&busy, gps_clock_monotonic() - begun);
    return answer == GPS_STREAMS_IDLE && gps_gate_stall();
}

static bool stall_try(const _Atomic bool *stop) {
    if (!drain_slow(stop) || !gps_swap_lock_within(LOCK_2MS))
        return false;
    const bool idle = !*stop && drain_all(stop);
    if (!idle) {
        gps_gate_open();
        gps_swap_unlock();
    }
    return idle;
}

static void stall_fail(void) {
    gps_gate_open(); /* to the work of slow streams */
    state.failures++;
    state.failed = gps_clock_monotonic();
    state.cost = state.failed - state.begun;
    if (!state.empty)
        return;
    note_wait(state.empty);
    state.patience = 2 * state.patience < EMPTY_6MS ? 2 * state.patience : EMPTY_6MS;
}

/* The next stalls need about as much patience. */
static void stall_succeed(void) {
    const uint64_t less = state.patience / 8 * 7;
    state.idle = gps_clock_monotonic();
    state.failures = 0;
    state.patience = less > EMPTY_500US ? less : EMPTY_500US;
}

bool gps_stall_begin(const _Atomic bool *stop) {
    if (gps_stall_wait() || gps_stall_rest())
        return false;
    state.begun = gps_clock_monotonic();
    state.empty = 0;
    state.patience = state.patience ? state.patience : EMPTY_500US;
    if (gps_streams_any_capturing() || gps_gate_is_refused() || !stall_try(stop)) {
        stall_fail();
        return false;
    }
    stall_succeed();
    return true;
}

void gps_stall_end(void) {
    if (gps_gate_stalls_since(state.begun))
        note_wait(state.idle);
    gps_gate_open();
    gps_swap_unlock();
}
