#include "gate.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "stack/call.h"
#include "threads/thread.h"
#include "util/clock.h"

enum { SLOTS = 65536, SEARCH = 1024 /* slots more between searches for dead threads' */ };

_Atomic unsigned gps_gate_state;
bool gps_gate_active;
bool gps_calls_counted;
__thread struct gps_gate_slot *gps_gate_slot;

static struct {
    struct gps_gate_slot *slots; /* the kernel gives them memory at first use */
    _Atomic unsigned used;       /* of them */
    _Atomic unsigned hand;       /* where the next search for a dead one begins */
    _Atomic uint64_t opening;    /* the last one by gps_gate_open_once */
    _Atomic bool refused;        /* the kernel has refused membarrier since the start */
    struct {
        _Atomic uint64_t stream, context;
    } kept[GPS_GATE_KEPT]; /* out */
    _Atomic unsigned keeps;
} state;

static int membarrier(int command) {
    return (int)syscall(SYS_membarrier, command, 0, 0);
}

/* --- slots --- */

/* Once, while the process begins. */
static bool map_slots(void) {
    if (state.slots)
        return true;
    void *slots = mmap(NULL, SLOTS * sizeof(struct gps_gate_slot), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    state.slots = slots == MAP_FAILED ? NULL : slots;
    return state.slots;
}

bool gps_gate_start(void) {
    return map_slots() && membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

static struct gps_gate_slot *take_new(int self) {
    unsigned n = atomic_load(&state.used);
    do {
        if (n == SLOTS)
            return NULL;
    } while (!atomic_compare_exchange_weak(&state.used, &n, n + 1));
    atomic_store(&state.slots[n].thread, self);
    return &state.slots[n];
}

/* The search goes on where the last one ended, because many threads come one after the other. */
static struct gps_gate_slot *take_dead(int self) {
    const unsigned used = atomic_load(&state.used);
    for (unsigned i = 0; i < used; i++) {
        struct gps_gate_slot *slot = &state.slots[atomic_fetch_add(&state.hand, 1) % used];
        int thread = atomic_load(&slot->thread);
        if (gps_thread_is_dead(thread) &&
            atomic_compare_exchange_strong(&slot->thread, &thread, self))
            return slot;
    }
    return NULL;
}

static struct gps_gate_slot *gate_slot_take(int self) {
    struct gps_gate_slot *slot = NULL;
    while (!slot) {
        const unsigned used = atomic_load(&state.used);
        if (used && used % SEARCH == 0)
            slot = take_dead(self);
        if (!slot)
            slot = take_new(self);
    }
    return slot;
}

struct gps_gate_slot *gps_gate_register(void) {
    const int error = errno;
    struct gps_gate_slot *slot = gate_slot_take((int)syscall(SYS_gettid));
    atomic_store(&slot->inside, 0);
    atomic_store(&slot->waiting, 0);
    atomic_store(&slot->calling, 0);
    slot->epoch = slot->opening = 0;
    slot->changes = 0;
    gps_gate_slot = slot;
    errno = error;
    return slot;
}

/* --- passing --- */

static void sleep_while(unsigned seen) {
    const struct timespec time = {.tv_nsec = (long)GPS_GATE_REVOKE};
    syscall(SYS_futex, &gps_gate_state, FUTEX_WAIT_PRIVATE, seen, &time, NULL, 0);
}

static void wake_all(void) {
    syscall(SYS_futex, &gps_gate_state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void force_open(unsigned seen) {
    const unsigned shut = GPS_GATE_CLOSED | GPS_GATE_ONCE | GPS_GATE_SOME;
    if (!(seen & GPS_GATE_HELD) &&
        atomic_compare_exchange_strong(&gps_gate_state, &seen, seen & ~shut))
        wake_all();
}

/* The context of a default stream is the one that the thread noted. */
static struct gps_gate_stream gate_stream_describe(const struct gps_gate_slot *slot,
                                                   uint64_t stream) {
    struct gps_gate_stream one = {.stream = stream > GPS_DEFAULT_STREAMS ? stream : 0};
    for (unsigned i = 0; !one.stream && i < GPS_GATE_NOTED; i++)
        if (slot->noted[i].stream == stream)
            one.context = slot->noted[i].context;
    return one;
}

static bool is_kept_out(const struct gps_gate_slot *slot, uint64_t stream) {
    const struct gps_gate_stream one = gate_stream_describe(slot, stream);
    const unsigned keeps = atomic_load(&state.keeps);
    for (unsigned i = 0; i < keeps; i++)
        if (atomic_load(&state.kept[i].stream) == one.stream &&
            (one.stream || atomic_load(&state.kept[i].context) == one.context))
            return true;
    return false;
}

static bool must_wait(const struct gps_gate_slot *slot, unsigned seen, uint64_t stream) {
    return seen & GPS_GATE_CLOSED ||
           (seen & GPS_GATE_ONCE && slot->opening == atomic_load(&state.opening)) ||
           (seen & GPS_GATE_SOME && is_kept_out(slot, stream));
}

/* After GPS_GATE_REVOKE the thread opens the gate. */
static void wait_once(unsigned seen, uint64_t begin) {
    sleep_while(seen);
    if (gps_clock_monotonic() - begin >= GPS_GATE_REVOKE)
        force_open(atomic_load(&gps_gate_state));
}

/* The thread steps outside while the gate is closed. */
void gps_gate_wait(struct gps_gate_pass *pass, uint64_t stream) {
    const int error = errno;
    const uint64_t begin = gps_clock_monotonic();
    unsigned seen;
    while (must_wait(pass->slot, seen = atomic_load(&gps_gate_state), stream)) {
        atomic_store(&pass->slot->stream, stream);
        atomic_store(&pass->slot->waiting, gps_clock_monotonic());
        atomic_store(&pass->slot->inside, 0);
        wait_once(seen, begin);
        atomic_store(&pass->slot->inside, (uintptr_t)pass);
    }
    atomic_store(&pass->slot->waiting, 0);
    pass->slot->opening = atomic_load(&state.opening);
    errno = error;
}

/* --- closing --- */

/* Whether a thread is in the gate, or a hooked call. It may have left by longjmp, and ended. */
static bool is_any_in(bool call) {
    const unsigned used = atomic_load(&state.used);
    for (unsigned i = 0; i < used; i++) {
        struct gps_gate_slot *slot = &state.slots[i];
        if (atomic_load(call ? &slot->calling : &slot->inside) &&
            !gps_thread_is_dead(atomic_load(&slot->thread)))
            return true;
    }
    return false;
}

bool gps_gate_is_empty(void) {
    return !is_any_in(false);
}

/* Pairs with the fence in gps_gate_enter_frame: a frame noted by a thread that did not see the gate
 * closed is seen in is_any_in from now on. Where the kernel refuses membarrier a sleep does: a
 * processor shows a store some microseconds after it, or when it is interrupted. */
static void await_stores(void) {
    const bool refused = membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0;
    atomic_store(&state.refused, refused);
    if (refused)
        usleep(10000);
}

/* Ends a pass of this thread that longjmp left: a thread that closes the gate in a call is not
 * inside by that call. The pass of a call that a signal handler interrupts lies above. */
static void forget_left(void) {
    struct gps_gate_slot *slot = gps_gate_slot;
    if (slot && gps_call.inside &&
        atomic_load(&slot->inside) < (uintptr_t)gps_call.driver_site.frame)
        atomic_store(&slot->inside, 0);
}

void gps_gate_shut(bool surely) {
    forget_left();
    atomic_fetch_or(&gps_gate_state, GPS_GATE_CLOSED | (surely ? GPS_GATE_HELD : 0u));
    atomic_fetch_and(&gps_gate_state, ~(unsigned)(GPS_GATE_ONCE | GPS_GATE_SOME));
    await_stores();
}

bool gps_gate_close(uint64_t timeout, bool surely) {
    const uint64_t until = gps_clock_monotonic() + timeout;
    bool empty;
    gps_gate_shut(surely);
    while (!(empty = gps_gate_is_empty()) && gps_clock_monotonic() < until)
        usleep(20);
    if (!empty)
        gps_gate_open();
    return empty;
}

void gps_gate_keep_out(const struct gps_gate_stream *streams, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        atomic_store(&state.kept[i].stream, streams[i].stream);
        atomic_store(&state.kept[i].context, streams[i].context);
    }
    atomic_store(&state.keeps, count);
    atomic_fetch_or(&gps_gate_state, GPS_GATE_SOME);
}

/* --- hooked calls --- */

void gps_calls_count(void) {
    if (!map_slots())
        return;
    gps_calls_counted = true;
    atomic_fetch_or(&gps_gate_state, GPS_GATE_COUNTS);
}

bool gps_calls_await(uint64_t timeout) {
    const uint64_t until = gps_clock_monotonic() + timeout;
    bool any;
    await_stores();
    while ((any = is_any_in(true)) && gps_clock_monotonic() < until)
        usleep(200);
    return !any;
}

/* A wait that a signal handler left by longjmp began before `since`. */
bool gps_gate_next_stalled(unsigned *n, uint64_t since, struct gps_gate_stream *held) {
    const unsigned used = atomic_load(&state.used);
    for (; *n < used; ++*n) {
        const struct gps_gate_slot *slot = &state.slots[*n];
        const uint64_t waiting = atomic_load(&slot->waiting);
        if (!waiting || waiting < since)
            continue;
        *held = gate_stream_describe(slot, atomic_load(&slot->stream));
        ++*n;
        return true;
    }
    return false;
}

bool gps_gate_stalls_since(uint64_t since) {
    struct gps_gate_stream unused;
    unsigned n = 0;
    return gps_gate_next_stalled(&n, since, &unused);
}

bool gps_gate_is_refused(void) {
    return atomic_load(&state.refused);
}

bool gps_gate_stall(void) {
    unsigned seen = atomic_load(&gps_gate_state);
    while (seen & GPS_GATE_CLOSED)
        if (atomic_compare_exchange_weak(&gps_gate_state, &seen, seen | GPS_GATE_HELD))
            return true;
    return false;
}

void gps_gate_open(void) {
    atomic_fetch_and(&gps_gate_state,
                     ~(unsigned)(GPS_GATE_CLOSED | GPS_GATE_HELD | GPS_GATE_ONCE | GPS_GATE_SOME));
    wake_all();
}

void gps_gate_open_once(void) {
    atomic_fetch_add(&state.opening, 1);
    atomic_fetch_or(&gps_gate_state, GPS_GATE_ONCE);
    atomic_fetch_and(&gps_gate_state, ~(unsigned)(GPS_GATE_CLOSED | GPS_GATE_HELD));
    wake_all();
}

void gps_gate_set_back(bool back) {
    if (back)
        atomic_fetch_or(&gps_gate_state, GPS_GATE_BACK);
    else
        atomic_fetch_and(&gps_gate_state, ~(unsigned)GPS_GATE_BACK);
}

void gps_gate_reset(void) {
    memset((void *)&state, 0, sizeof(state));
    atomic_store(&gps_gate_state, 0);
    gps_gate_slot = NULL;
    gps_calls_counted = gps_gate_active = false;
}
