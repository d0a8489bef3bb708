/*
 * program_signals.h - the signal mask of the program, while our own work blocks signals.
 *
 * The signals of faults stay as the program has them: a fault inside the driver must reach the
 * program's crash reporter, and one whose signal is blocked ends the process without it.
 * Waits are made with this mask, so that the program's handlers run meanwhile: Ctrl-C must end a
 * long wait. No lock is held in such a wait, for a handler may leave it by longjmp (lock.h).
 */
#pragma once

#include <signal.h>

#include "lock.h"

/* NULL: this thread is not inside a gps_scope. Set by driver/scope.c. */
extern __thread const sigset_t *gps_program_signals;

/* Blocks all signals of this thread but those of faults. `before` gets the mask until now. */
void gps_program_signals_block(sigset_t *before);

__attribute__((cold)) void gps_signals_failed(void);

/* The mask to wait with. */
static inline const sigset_t *gps_signals_to_wait_with(void) {
    if (__builtin_expect(gps_locks_held, 0))
        gps_signals_failed();
    return gps_program_signals;
}
