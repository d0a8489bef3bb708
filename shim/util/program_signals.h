/*
 * program_signals.h - the signal mask of the program, while our own work blocks all signals.
 *
 * Waits are made with this mask, so that the program's handlers run meanwhile: Ctrl-C must end a
 * long wait. No lock is held in such a wait, for a handler may leave it by longjmp.
 */
#pragma once

#include <signal.h>

/* NULL: this thread is not inside a gps_scope. Set by driver/scope.c. */
extern __thread const sigset_t *gps_program_signals;
