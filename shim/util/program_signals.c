/* program_signals.c - see program_signals.h. */
#include "program_signals.h"

#include <stdint.h>

__thread const sigset_t *gps_program_signals;

/* The kernel's layout, which a sigset_t begins with: made once, for scopes are many. */
#define BIT(signal) (UINT64_C(1) << (signal - 1))
static const union {
    uint64_t bits;
    sigset_t set;
} blocked = {
    .bits = ~(BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGSEGV) | BIT(SIGSYS))};

void gps_program_signals_block(sigset_t *before) {
    sigprocmask(SIG_BLOCK, &blocked.set, before);
}

/* Threads of ours block all signals, and have no handlers to run. */
void gps_signals_failed(void) {
    if (gps_program_signals && !sigismember(gps_program_signals, SIGINT))
        gps_lock_check(GPS_ACROSS_WAIT, "signals let in");
}
