#include "swap.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "driver/scope.h"
#include "stack/module.h"
#include "threads/thread.h"
#include "util/clock.h"
#include "util/program_signals.h"

#define TRY_FOR (20 * GPS_MS)
#define LOOK    50000 /* ns between two looks whether the lock is free */
enum { CLOSE_TRIES = 24 };

static struct {
    GPS_LOCK(GPS_RANK_SWAP) lock;
    gps_trylock_fn *_Atomic trylock;
    _Atomic bool held;
    _Atomic uint64_t wanted; /* when a thread last found it held */
    _Atomic int destroyer;   /* the thread that destroys a context; 0: none does */
} state;

/* A thread that comes here destroys no context any more: a handler left the call by longjmp. */
void gps_swap_return(void) {
    int self = state.destroyer ? (int)syscall(SYS_gettid) : 0;
    if (self)
        atomic_compare_exchange_strong(&state.destroyer, &self, 0);
}

/* Whether another thread destroys a context; one that has ended does not. */
static bool swap_is_forbidden(void) {
    gps_swap_return();
    return state.destroyer && !gps_thread_is_dead(state.destroyer);
}

/* A program that uses CUDA has libpthread. */
bool gps_swap_try_lock(void) {
    if (!state.trylock)
        state.trylock = GPS_LATE(pthread_mutex_trylock);
    if (!state.trylock)
        state.trylock = pthread_mutex_lock;
    if (!gps_lock_try(&state.lock, state.trylock))
        return false;
    const bool may = !swap_is_forbidden();
    state.held = may;
    if (!may)
        gps_lock_give(&state.lock);
    return may;
}

bool gps_swap_lock_within(uint64_t timeout) {
    const uint64_t begun = gps_clock_monotonic();
    while (!gps_swap_try_lock()) {
        const uint64_t now = gps_clock_monotonic();
        if (now - begun >= timeout)
            return false;
        state.wanted = now;
        gps_program_signals_poll(NULL, LOOK);
    }
    return true;
}

void gps_swap_lock(void) {
    (void)gps_swap_lock_within(UINT64_MAX);
}

bool gps_swap_is_wanted_since(uint64_t since) {
    return state.wanted >= since;
}

/* A thread that takes the lock again and again leaves it for a moment to a waiting thread. */
void gps_swap_unlock(void) {
    const struct timespec moment = {.tv_nsec = 2 * LOOK};
    state.held = false;
    gps_lock_give(&state.lock);
    if (state.wanted && gps_clock_monotonic() - state.wanted < 4 * LOOK)
        nanosleep(&moment, NULL);
}

void gps_swap_await(uint64_t timeout) {
    gps_thread_await(&state.held, timeout);
}

void gps_swap_forbid(void) {
    gps_swap_lock();
    state.destroyer = (int)syscall(SYS_gettid);
    gps_swap_unlock();
}

void gps_swap_permit(void) {
    state.destroyer = 0;
}

static enum gps_streams_answer wait_for_idle(uint64_t until, struct gps_stream *busy) {
    const struct timespec interval = {.tv_nsec = 50000};
    enum gps_streams_answer answer;
    while ((answer = gps_streams_look(0, busy)) == GPS_STREAMS_BUSY &&
           gps_clock_monotonic() < until)
        nanosleep(&interval, NULL);
    return answer;
}

/* --- tries --- */

void gps_swap_end(void) {
    gps_gate_open();
}

bool gps_swap_is_soon(const struct gps_swap_tries *tries) {
    return tries->looked && tries->answer == GPS_STREAMS_BUSY && tries->failed % CLOSE_TRIES != 0;
}

bool gps_swap_try(struct gps_swap_tries *tries) {
    const uint64_t until = gps_clock_monotonic() + TRY_FOR;
    tries->failed++;
    tries->looked = gps_gate_close(TRY_FOR, true);
    if (!tries->looked)
        return false;
    tries->answer = wait_for_idle(until, &tries->busy);
    if (tries->answer == GPS_STREAMS_IDLE)
        return true;
    if (gps_swap_is_soon(tries))
        gps_gate_open_once();
    else
        gps_gate_open();
    return false;
}

bool gps_swap_if_idle(void) {
    struct gps_stream busy;
    if (gps_streams_any_capturing() || !gps_gate_close(GPS_MS / 2, true))
        return false;
    const bool idle = gps_streams_look(0, &busy) == GPS_STREAMS_IDLE;
    if (!idle)
        gps_gate_open();
    return idle;
}

static bool is_busy(const struct gps_stream *stream) {
    gps_swap_lock();
    const bool busy = gps_streams_is_busy(stream);
    gps_swap_unlock();
    return busy;
}

/* Work that the program gives the device from the mark on is noted anew. */
static bool swap_mark(uint64_t *marked) {
    const bool closed = gps_gate_close(TRY_FOR, false);
    const bool held = closed && gps_gate_stall();
    if (held)
        *marked = gps_streams_mark();
    if (closed)
        gps_gate_open();
    return held;
}

/* No thread destroys a context while this one has the lock. A context that was destroyed before has
 * no work in the list. GPS_NOT_READY: try again. */
static int enter_marked(uint64_t context, uint64_t *marked) {
    gps_swap_lock();
    int code = GPS_NOT_READY;
    if (gps_streams_knows(context) && swap_mark(marked))
        code = gps_ops->enter(context);
    gps_swap_unlock();
    return code;
}

/* A context that answers with an error of its own has lost its work. */
static void wait_for_context(uint64_t context) {
    uint64_t marked;
    int code = enter_marked(context, &marked);
    if (code == GPS_OK) {
        code = gps_scope_synchronize();
        gps_ops->leave();
    }
    if (code == GPS_NOT_READY || gps_code_is_of_capture(code))
        gps_program_signals_poll(NULL, GPS_MS);
    else
        gps_streams_waited(context, marked);
}

static void wait_for_stream(const struct gps_stream *stream) {
    const uint64_t until = gps_clock_monotonic() + GPS_SECOND;
    while (is_busy(stream) && gps_clock_monotonic() < until)
        gps_program_signals_poll(NULL, GPS_MS);
}

/* Behind the gate no stream joins a capture while the driver is asked about it. */
static enum gps_streams_answer swap_look_at(uint64_t context) {
    gps_swap_lock();
    const bool closed = gps_streams_any_capturing() && gps_gate_close(GPS_MS / 2, false);
    const enum gps_streams_answer answer = gps_streams_look_at(context, closed);
    if (closed)
        gps_gate_open();
    gps_swap_unlock();
    return answer;
}

void gps_swap_await_context(uint64_t context) {
    enum gps_streams_answer answer;
    while ((answer = swap_look_at(context)) != GPS_STREAMS_IDLE)
        if (answer == GPS_STREAMS_BUSY)
            gps_program_signals_poll(NULL, GPS_MS);
        else
            wait_for_context(context);
}

void gps_swap_wait(struct gps_swap_tries *tries) {
    if (tries->looked && tries->answer == GPS_STREAMS_UNKNOWN) {
        wait_for_context(tries->busy.context);
        return;
    }
    gps_program_signals_poll(NULL, GPS_MS);
    if (gps_swap_is_soon(tries))
        return;
    if (gps_streams_any_capturing() || !tries->looked)
        gps_program_signals_poll(NULL, GPS_SECOND / 5);
    else
        wait_for_stream(&tries->busy);
}

void gps_swap_reset(void) {
    memset((void *)&state, 0, sizeof(state));
}
