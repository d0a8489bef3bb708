/* swap.c - see swap.h. */
#include "swap.h"

#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "driver/driver_ops.h"
#include "streams.h"
#include "threads/thread.h"
#include "util/clock.h"
#include "util/program_signals.h"

#define ATTEMPT (GPS_SECOND / 50)
enum { LONGEST_ATTEMPT = 7 /* attempts; then each lasts 2.6 s */ };

static struct {
    GPS_LOCK(GPS_RANK_SWAP) lock;
    _Atomic bool held;
    _Atomic int destroyer; /* the thread that destroys a context; 0: none does */
} state;

/* Whether another thread destroys a context. A thread that has ended, or that comes here, does not
 * destroy one any more: a handler has left the call by longjmp. */
static bool is_forbidden(void) {
    const int thread = state.destroyer;
    return thread && thread != (int)syscall(SYS_gettid) && !gps_thread_is_dead(thread);
}

static bool try_lock(void) {
    gps_lock_take(&state.lock);
    const bool may = !is_forbidden();
    state.held = may;
    if (!may)
        gps_lock_give(&state.lock);
    return may;
}

void gps_swap_lock(void) {
    const struct timespec moment = {.tv_nsec = 1000000};
    while (!try_lock())
        (void)ppoll(NULL, 0, &moment, gps_signals_to_wait_with());
}

void gps_swap_unlock(void) {
    state.held = false;
    gps_lock_give(&state.lock);
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

static bool wait_for_idle(uint64_t until) {
    const struct timespec interval = {.tv_nsec = 50000};
    bool idle;
    while (!(idle = gps_streams_idle()) && gps_clock_monotonic() < until)
        nanosleep(&interval, NULL);
    return idle;
}

bool gps_swap_begin(uint64_t timeout) {
    const uint64_t until = gps_clock_monotonic() + timeout;
    if (gps_streams_capturing() || !gps_gate_close(timeout, false))
        return false;
    if (wait_for_idle(until) && gps_gate_hold())
        return true;
    gps_gate_open();
    return false;
}

/* No stream can be asked during a capture, and some may be unknown. A free of scrap memory waits
 * for all of them. */
static bool becomes_idle(uint64_t until) {
    return gps_streams_capturing() || !gps_streams_known() ? gps_ops->synchronize() == GPS_OK
                                                           : wait_for_idle(until);
}

bool gps_swap_begin_surely(unsigned attempt) {
    const uint64_t timeout = ATTEMPT << (attempt < LONGEST_ATTEMPT ? attempt : LONGEST_ATTEMPT);
    const uint64_t until = gps_clock_monotonic() + timeout;
    const struct timespec interval = {.tv_nsec = 1000000}; /* for those who wait at the gate */
    if (!gps_gate_close(timeout, true))
        return false;
    if (becomes_idle(until))
        return true;
    gps_gate_open();
    nanosleep(&interval, NULL);
    return false;
}

void gps_swap_end(void) {
    gps_gate_open();
}

void gps_swap_reset(void) {
    memset((void *)&state, 0, sizeof(state));
}
