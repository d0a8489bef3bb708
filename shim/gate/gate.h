/*
 * gate.h - the gate that every launch, copy and fill of a process with merge rules passes.
 *
 * A block must not be unmapped under work that uses it. So a thread that swaps blocks closes the
 * gate, waits until no thread is inside and the streams are idle, swaps, and opens it. A pass costs
 * two stores to memory of the thread's own and a load; the thread that closes the gate pays with
 * membarrier(2). A thread that comes to a closed gate waits. After GPS_GATE_REVOKE it opens the
 * gate itself, unless it is held, which is short. A frame that longjmp left inside counts as
 * outside from when the thread next passes or closes the gate, or from its end. Before it closes,
 * the gate may keep out the work of a few streams alone, as a wish: nothing relies on it. The gate
 * does not call malloc, and a signal handler may pass it.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPS_GATE_REVOKE (UINT64_C(25) * 1000000) /* ns */

enum gps_gate_bit {
    GPS_GATE_CLOSED = 1,
    GPS_GATE_HELD = 2,    /* the swap has begun: closed until it is over */
    GPS_GATE_BACK = 4,    /* blocks have no memory yet: work that may touch them maps it */
    GPS_GATE_ONCE = 8,    /* open, but each thread passes once only; it is about to close again */
    GPS_GATE_SOME = 16,   /* open, but not for work of some streams */
    GPS_GATE_COUNTS = 32, /* hooked calls are counted, so none goes straight through */
};

enum { GPS_DEFAULT_STREAMS = 2 /* 0, and the two with names: those of the current context */ };
enum {
    GPS_GATE_NOTED = 4, /* streams that a thread may alternate between */
    GPS_GATE_KEPT = 4,  /* streams whose work is kept out alone */
};

/* A stream as work comes to the gate with it: an explicit one, or a default one of a context. */
struct gps_gate_stream {
    uint64_t stream;  /* 0: a default one */
    uint64_t context; /* of a default one; 0: not known */
};

struct gps_gate_slot {
    _Atomic uintptr_t inside; /* the frame of the outermost pass; 0: outside */
    /* Streams that were noted (streams.h) in an epoch. */
    struct gps_gate_noted {
        uint64_t stream, context; /* of a default stream, else 0 */
    } noted[GPS_GATE_NOTED];
    uint64_t epoch;
    unsigned changes;          /* of them */
    uint64_t opening;          /* GPS_GATE_ONCE: the last opening by which the thread passed */
    _Atomic uintptr_t calling; /* the frame of the outermost hooked call; 0: in none */
    _Atomic uint64_t waiting;  /* since when the thread waits, if the gate was closed before */
    _Atomic uint64_t stream;   /* the stream with whose work it waits */
    _Atomic int thread;        /* the slot's owner; 0: none */
} __attribute__((aligned(64)));

struct gps_gate_pass {
    struct gps_gate_slot *slot;
    uintptr_t before;
};

/* Launches and copies of this process pass the gate: a rule of it merges, or it may be suspended.
 * Constant once the process has begun. */
extern bool gps_gate_active;

/* Is called once, before the first pass. False: the kernel has no membarrier, so the gate cannot be
 * closed; or there is no address space for its slots. */
bool gps_gate_start(void);

extern _Atomic unsigned gps_gate_state;
extern __thread struct gps_gate_slot *gps_gate_slot;
/* Gives the thread a slot. Where 65,536 threads have one it waits until one of them ends. */
struct gps_gate_slot *gps_gate_register(void);
void gps_gate_wait(struct gps_gate_pass *pass, uint64_t stream);

/* Notes the thread's outermost frame. The compiler fence keeps that store before the loads by which
 * the caller decides to go on; the membarrier in await_stores (gate.c) makes the processor do so.
 * Returns the frame that is noted already, or 0: a frame below this one was left. */
static inline uintptr_t gps_gate_enter_frame(_Atomic uintptr_t *outermost, uintptr_t here) {
    const uintptr_t now = atomic_load_explicit(outermost, memory_order_relaxed);
    const uintptr_t before = now > here ? now : 0;
    if (!before)
        atomic_store_explicit(outermost, here, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    return before;
}

/* Enters the gate with work of that stream. */
static inline void gps_gate_enter(struct gps_gate_pass *pass, uint64_t stream) {
    struct gps_gate_slot *slot = gps_gate_slot ? gps_gate_slot : gps_gate_register();
    pass->slot = slot;
    pass->before = gps_gate_enter_frame(&slot->inside, (uintptr_t)pass);
    if (__builtin_expect(atomic_load_explicit(&gps_gate_state, memory_order_acquire) &
                             (GPS_GATE_CLOSED | GPS_GATE_ONCE | GPS_GATE_SOME),
                         0) &&
        !pass->before)
        gps_gate_wait(pass, stream);
}

static inline void gps_gate_leave(const struct gps_gate_pass *pass) {
    if (!pass->before)
        atomic_store_explicit(&pass->slot->inside, 0, memory_order_release);
}

/* --- hooked calls, where they are counted --- */

/* The process counts the hooked calls that are under way, so that it can wait for their end
 * (suspend). Constant once the process has begun. It costs two stores a call. */
extern bool gps_calls_counted;
void gps_calls_count(void);

struct gps_counted_call {
    struct gps_gate_slot *slot; /* NULL: it is not counted */
    uintptr_t before;
};

static inline void gps_call_begin(struct gps_counted_call *call) {
    struct gps_gate_slot *slot = gps_gate_slot ? gps_gate_slot : gps_gate_register();
    call->slot = slot;
    call->before = gps_gate_enter_frame(&slot->calling, (uintptr_t)call);
}

/* Does nothing for a call that is not counted. */
static inline void gps_call_end(struct gps_counted_call *call) {
    if (__builtin_expect(!call->slot, 1))
        return;
    if (!call->before)
        atomic_store_explicit(&call->slot->calling, 0, memory_order_release);
    call->slot = NULL;
}

/* Waits until no call is under way, while new ones wait at their entry. False: a call still is
 * under way after `timeout` ns. */
bool gps_calls_await(uint64_t timeout);

/* --- for the thread that swaps; one at a time --- */

/* Closes the gate and waits until no thread is inside. False: one still is after `timeout` ns. With
 * `surely` the gate is held from the beginning, so that no thread that waits opens it. */
bool gps_gate_close(uint64_t timeout, bool surely);
/* The two halves of that: from now on no thread comes in; and whether none is inside. */
void gps_gate_shut(bool surely);
bool gps_gate_is_empty(void);
/* Keeps out the work of these streams, GPS_GATE_KEPT at most, until the gate is shut or opened. */
void gps_gate_keep_out(const struct gps_gate_stream *streams, unsigned count);
/* Whether the kernel refused membarrier when the gate was last closed, as a filter of the program's
 * may have it. The gate closes all the same, 10 ms later. */
bool gps_gate_is_refused(void);
/* The swap begins. False: a thread that waited too long has opened the gate. */
bool gps_gate_stall(void);
void gps_gate_open(void);
/* The same, for one pass of each thread. A thread that waits for a second one opens the gate after
 * GPS_GATE_REVOKE. */
void gps_gate_open_once(void);

/* Whether a thread has waited at the gate since that time or later. */
bool gps_gate_stalls_since(uint64_t since);
/* The next such thread, from slot *n on, and the stream with whose work it waits. */
bool gps_gate_next_stalled(unsigned *n, uint64_t since, struct gps_gate_stream *held);

void gps_gate_set_back(bool back);

void gps_gate_reset(void); /* in a forked child */
