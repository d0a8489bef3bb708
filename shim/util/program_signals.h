/*
 * program_signals.h - the signal mask of the program, while our own work blocks signals.
 *
 * The signals of faults stay as the program has them: a fault inside the driver must reach the
 * program's crash reporter, and one whose signal is blocked ends the process without it.
 * Waits are made with the program's mask, so that its handlers run meanwhile: Ctrl-C must end a
 * long wait. No lock is held in such a wait, because a handler may leave it by longjmp (lock.h).
 */
#pragma once

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Blocks all signals of this thread but those of faults. *before gets the mask so far. */
void gps_program_signals_block(sigset_t *before);

/* The program's mask for a thread, in the kernel's layout. */
struct gps_program_signals {
    uint64_t mask;
    bool known; /* the thread is inside a gps_scope, and in no wait */
};

/* The same for a gps_scope. *outer gets the state outside of the scope. */
void gps_program_signals_enter(struct gps_program_signals *outer, sigset_t *before);
void gps_program_signals_leave(const struct gps_program_signals *outer, const sigset_t *before);

/* Inside a gps_scope: around a call that waits. */
struct gps_let_in {
    struct gps_program_signals program;
    sigset_t ours;
};
void gps_program_signals_let_in(struct gps_let_in *let_in);
void gps_program_signals_keep_out(const struct gps_let_in *let_in);

/* The program's signals are let in until the end of the block. */
#define GPS_LET_SIGNALS_IN()                                                                       \
    struct gps_let_in let_in __attribute__((cleanup(gps_program_signals_keep_out)));               \
    gps_program_signals_let_in(&let_in)

/* As poll(2), with the program's signals let in; NULL: only waits. */
int gps_program_signals_poll(struct pollfd *poller, uint64_t nanos);
/* The same until there is something to read, or until a time of CLOCK_MONOTONIC: 0 or -errno. */
int gps_program_signals_await(int fd, uint64_t until);

/* Discards a blocked signal that is pending for this thread. An ignored signal never was pending.
 * Changes errno. */
static inline void gps_signal_discard(int number) {
    const struct timespec now = {0, 0};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    while (sigtimedwait(&set, NULL, &now) < 0 && errno == EINTR)
        continue;
}
