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

#include "threads/thread.h"
#include "util/clock.h"

enum { SLOTS = 1024 /* a chunk */, CHUNKS = 64 };

_Atomic unsigned gps_gate_state;
bool gps_calls_counted;
__thread struct gps_gate_slot *gps_gate_slot;

static struct {
    struct gps_gate_slot first[SLOTS];
    struct gps_gate_slot *_Atomic more[CHUNKS]; /* mapped when they are needed; not the first */
    _Atomic unsigned chunks, used;              /* chunks besides the first; slots of all */
    _Atomic unsigned hand;                      /* where the next search for a dead one begins */
    _Atomic int counted;                        /* passes of threads without a slot */
    _Atomic int calls;                          /* hooked calls of such threads */
    _Atomic uint64_t opening;                   /* the last one by gps_gate_open_once */
    _Atomic bool refused;                       /* membarrier is, since the start */
    struct {
        _Atomic uint64_t stream, context;
    } kept[GPS_GATE_KEPT]; /* out */
    _Atomic unsigned keeps;
} state;

static int membarrier(int command) {
    return (int)syscall(SYS_membarrier, command, 0, 0);
}

bool gps_gate_start(void) {
    return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

/* --- slots --- */

static struct gps_gate_slot *slot_at(unsigned n) {
    return n < SLOTS ? &state.first[n] : &atomic_load(&state.more[n / SLOTS])[n % SLOTS];
}

static struct gps_gate_slot *take_new(int self) {
    unsigned n = atomic_load(&state.used);
    do {
        if (n >= (atomic_load(&state.chunks) + 1) * SLOTS)
            return NULL;
    } while (!atomic_compare_exchange_weak(&state.used, &n, n + 1));
    atomic_store(&slot_at(n)->thread, self);
    return slot_at(n);
}

/* The search goes on where the last one ended, because many threads come one after the other. */
static struct gps_gate_slot *take_dead(int self) {
    const unsigned used = atomic_load(&state.used);
    for (unsigned i = 0; i < used; i++) {
        struct gps_gate_slot *slot = slot_at(atomic_fetch_add(&state.hand, 1) % used);
        int thread = atomic_load(&slot->thread);
        if (gps_thread_is_dead(thread) &&
            atomic_compare_exchange_strong(&slot->thread, &thread, self))
            return slot;
    }
    return NULL;
}

/* Adds one to `have` chunks. True: there are more than that now. Threads that found those full
 * together share the one that the first of them adds. */
static bool add_chunk(unsigned have) {
    struct gps_gate_slot *none = NULL;
    if (atomic_load(&state.chunks) != have)
        return true;
    if (have + 1 == CHUNKS)
        return false;
    void *chunk = mmap(NULL, SLOTS * sizeof(struct gps_gate_slot), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunk == MAP_FAILED)
        return false;
    if (!atomic_compare_exchange_strong(&state.more[have + 1], &none, chunk))
        munmap(chunk, SLOTS * sizeof(struct gps_gate_slot));
    atomic_compare_exchange_strong(&state.chunks, &have, have + 1);
    return true;
}

static struct gps_gate_slot *take_slot(int self) {
    unsigned have = atomic_load(&state.chunks);
    struct gps_gate_slot *slot = take_new(self);
    if (!slot)
        slot = take_dead(self);
    while (!slot && add_chunk(have)) {
        have = atomic_load(&state.chunks);
        slot = take_new(self);
    }
    return slot;
}

struct gps_gate_slot *gps_gate_register(void) {
    const int error = errno;
    struct gps_gate_slot *slot = take_slot((int)syscall(SYS_gettid));
    if (slot) {
        atomic_store(&slot->inside, 0);
        atomic_store(&slot->waiting, 0);
        atomic_store(&slot->calling, 0);
        slot->epoch = slot->opening = 0;
        slot->changes = 0;
    }
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

/* A default stream has its context from what the thread noted. */
static struct gps_gate_stream describe(const struct gps_gate_slot *slot, uint64_t stream) {
    struct gps_gate_stream one = {.stream = stream > GPS_DEFAULT_STREAMS ? stream : 0};
    for (unsigned i = 0; !one.stream && i < GPS_GATE_NOTED; i++)
        if (slot->noted[i].stream == stream)
            one.context = slot->noted[i].context;
    return one;
}

static bool is_kept_out(const struct gps_gate_slot *slot, uint64_t stream) {
    const struct gps_gate_stream one = describe(slot, stream);
    const unsigned keeps = atomic_load(&state.keeps);
    for (unsigned i = 0; i < keeps; i++)
        if (atomic_load(&state.kept[i].stream) == one.stream &&
            (one.stream || atomic_load(&state.kept[i].context) == one.context))
            return true;
    return false;
}

static bool must_wait(const struct gps_gate_slot *slot, unsigned seen, uint64_t stream) {
    if (seen & GPS_GATE_CLOSED)
        return true;
    if (!slot)
        return false;
    return (seen & GPS_GATE_ONCE && slot->opening == atomic_load(&state.opening)) ||
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

void gps_gate_enter_counted(void) {
    const int error = errno;
    const uint64_t begin = gps_clock_monotonic();
    unsigned seen;
    atomic_fetch_add(&state.counted, 1);
    while (must_wait(NULL, seen = atomic_load(&gps_gate_state), 0)) {
        atomic_fetch_sub(&state.counted, 1);
        wait_once(seen, begin);
        atomic_fetch_add(&state.counted, 1);
    }
    errno = error;
}

void gps_gate_leave_counted(void) {
    atomic_fetch_sub(&state.counted, 1);
}

/* --- closing --- */

/* A thread may have left the gate by longjmp, and have ended since. */
static bool is_inside(struct gps_gate_slot *slot) {
    return atomic_load(&slot->inside) && !gps_thread_is_dead(atomic_load(&slot->thread));
}

bool gps_gate_is_empty(void) {
    const unsigned used = atomic_load(&state.used);
    for (unsigned i = 0; i < used; i++)
        if (is_inside(slot_at(i)))
            return false;
    return atomic_load(&state.counted) == 0;
}

/* Every pass that did not see the gate closed is seen from now on. Where the kernel refuses
 * membarrier time does it: a processor has shown a store some microseconds after it, or when it is
 * interrupted. */
static void await_stores(void) {
    const bool refused = membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0;
    atomic_store(&state.refused, refused);
    if (refused)
        usleep(10000);
}

void gps_gate_shut(bool surely) {
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
    gps_calls_counted = true;
    atomic_fetch_or(&gps_gate_state, GPS_GATE_COUNTS);
}

void gps_call_begin_counted(void) {
    atomic_fetch_add(&state.calls, 1);
}

void gps_call_end_counted(void) {
    atomic_fetch_sub(&state.calls, 1);
}

static bool is_calling(struct gps_gate_slot *slot) {
    return atomic_load(&slot->calling) && !gps_thread_is_dead(atomic_load(&slot->thread));
}

static bool any_calls(void) {
    const unsigned used = atomic_load(&state.used);
    for (unsigned i = 0; i < used; i++)
        if (is_calling(slot_at(i)))
            return true;
    return atomic_load(&state.calls) != 0;
}

bool gps_calls_await(uint64_t timeout) {
    const uint64_t until = gps_clock_monotonic() + timeout;
    bool any;
    await_stores();
    while ((any = any_calls()) && gps_clock_monotonic() < until)
        usleep(200);
    return !any;
}

/* One that a handler left by longjmp waited at an earlier close. */
bool gps_gate_next_held(unsigned *n, uint64_t since, struct gps_gate_stream *held) {
    const unsigned used = atomic_load(&state.used);
    for (; *n < used; ++*n) {
        const struct gps_gate_slot *slot = slot_at(*n);
        const uint64_t waiting = atomic_load(&slot->waiting);
        if (!waiting || waiting < since)
            continue;
        *held = describe(slot, atomic_load(&slot->stream));
        ++*n;
        return true;
    }
    return false;
}

bool gps_gate_holds_since(uint64_t since) {
    struct gps_gate_stream unused;
    unsigned n = 0;
    return gps_gate_next_held(&n, since, &unused);
}

bool gps_gate_is_refused(void) {
    return atomic_load(&state.refused);
}

bool gps_gate_hold(void) {
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
    gps_calls_counted = false;
}
