/*
 * gate.h - the gate that every launch, copy and fill of a process with merge rules passes.
 *
 * A block must not be unmapped under work that uses it. So whoever swaps blocks closes the gate,
 * waits until nobody is inside and the streams are idle, swaps, and opens it. A pass costs two
 * stores to memory of the thread's own and a load; the thread that closes the gate pays with
 * membarrier(2). A thread that comes to a closed gate waits. After GPS_GATE_REVOKE it opens the
 * gate itself, unless it is held, which is short. A frame that longjmp left inside counts as
 * outside from the thread's next pass on, or from its end. Threads for which there is no slot are
 * counted only. The gate does not call malloc, and a signal handler may pass it.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GPS_GATE_REVOKE (UINT64_C(25) * 1000000) /* ns */

enum gps_gate_bit {
    GPS_GATE_CLOSED = 1,
    GPS_GATE_HELD = 2, /* the swap has begun: closed until it is over */
    GPS_GATE_BACK = 4, /* blocks have no memory yet: work that may touch them gives them some */
    GPS_GATE_ONCE = 8, /* open, but each thread passes once only; it is about to close again */
};

struct gps_gate_slot {
    _Atomic uintptr_t inside; /* the frame of the outermost pass; 0: outside */
    /* The last stream noted (streams.h), and the context of one that is a default stream. */
    uint64_t stream, context, epoch;
    uint64_t opening;   /* GPS_GATE_ONCE: the last one by which it passed */
    _Atomic int thread; /* whose it is; 0: nobody's */
} __attribute__((aligned(64)));

struct gps_gate_pass {
    struct gps_gate_slot *slot;
    uintptr_t before;
};

/* Is called once, before the first pass. False: the kernel has no membarrier, so the gate cannot be
 * closed. */
bool gps_gate_start(void);

extern _Atomic unsigned gps_gate_state;
extern __thread struct gps_gate_slot *gps_gate_slot;
/* NULL: there is no memory for more than 1,024 threads, or there are 65,536. */
struct gps_gate_slot *gps_gate_register(void);
void gps_gate_wait(struct gps_gate_pass *pass);
void gps_gate_enter_counted(void);
void gps_gate_leave_counted(void);

static inline void gps_gate_enter(struct gps_gate_pass *pass) {
    struct gps_gate_slot *slot = gps_gate_slot ? gps_gate_slot : gps_gate_register();
    pass->slot = slot;
    if (__builtin_expect(!slot, 0)) {
        gps_gate_enter_counted();
        return;
    }
    const uintptr_t here = (uintptr_t)pass;
    const uintptr_t now = atomic_load_explicit(&slot->inside, memory_order_relaxed);
    pass->before = now > here ? now : 0; /* a frame below this one was left */
    if (!pass->before)
        atomic_store_explicit(&slot->inside, here, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&gps_gate_state, memory_order_acquire) &
                             (GPS_GATE_CLOSED | GPS_GATE_ONCE),
                         0) &&
        !pass->before)
        gps_gate_wait(pass);
}

static inline void gps_gate_leave(const struct gps_gate_pass *pass) {
    if (__builtin_expect(!pass->slot, 0))
        gps_gate_leave_counted();
    else if (!pass->before)
        atomic_store_explicit(&pass->slot->inside, 0, memory_order_release);
}

/* --- for the one that swaps; one at a time --- */

/* Closes the gate and waits until nobody is inside. False: somebody still is after `timeout` ns.
 * With `surely` it is held from the beginning, so that no thread that waits opens it. */
bool gps_gate_close(uint64_t timeout, bool surely);
/* Whether the kernel refused membarrier when the gate was last closed, as a filter of the program's
 * may have it. The gate closes all the same, 10 ms later. */
bool gps_gate_is_refused(void);
/* The swap begins. False: a thread that waited too long has opened the gate. */
bool gps_gate_hold(void);
void gps_gate_open(void);
/* The same, for one pass of each thread. Who waits for a second one opens it as above. */
void gps_gate_open_once(void);

void gps_gate_set_back(bool back);

void gps_gate_reset(void); /* in a forked child */
