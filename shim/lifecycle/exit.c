/* exit.c - the end of the process; see lifecycle.h. */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver/scope.h"
#include "findings/leaks.h"
#include "lifecycle.h"
#include "log/event_log.h"
#include "log/log.h"
#include "process/call_counter.h"
#include "process/membership.h"
#include "process/process.h"
#include "rules/rules.h"
#include "stack/call.h"
#include "stack/stack.h"
#include "teardown.h"

static _Atomic bool registered; /* atexit handlers survive fork, so once is enough */

/* A signal handler that ends the process may have interrupted a wrapper of ours, locks and all. */
static bool call_is_interrupted(void) {
    return gps_call.inside != 0;
}

/* A crash handler on a stack of its own cannot run the end of the process: that stack is small,
 * too. The kernel drops the lease, and the next process removes the files. */
static bool in_crash_handler(void) {
    stack_t stack;
    return sigaltstack(NULL, &stack) == 0 && (stack.ss_flags & SS_ONSTACK);
}

/* A child made by vfork borrows this memory: its _exit is not the end of this process. */
static bool is_borrowed(void) {
    return gps_process_self()->pid != (uint32_t)getpid();
}

/* Whether the end must be skipped: in a signal handler the thread that it interrupted may hold any
 * lock, malloc's and the driver's too. */
static bool is_hurried(void) {
    return call_is_interrupted() || is_borrowed() || in_crash_handler() || gps_stack_in_handler();
}

/* The end that began first is the process's, and so is its exit status: later ones wait. */
static void leave_it_to_another(void) {
    if (gps_process_phase() == GPS_PHASE_LEAVING && !is_hurried())
        gps_lifecycle_stay();
}

/* --- before the driver's teardown --- */

static void tear_down(void) {
    if (!gps_process_begin_exit() || gps_process_phase() == GPS_PHASE_SUSPENDED)
        return;
    GPS_SCOPE();
    gps_teardown_exit();
}

static void on_exit_handler(void) {
    leave_it_to_another();
    if (gps_process_phase() == GPS_PHASE_ON && !call_is_interrupted())
        tear_down();
}

void gps_lifecycle_driver_ready(void) {
    gps_parent_note_first();
    if (!atomic_exchange(&registered, true) && atexit(on_exit_handler) != 0)
        registered = false;
}

bool gps_exit_registered(void) {
    return registered;
}

/* --- the very end --- */

/* Records that other processes may still read stay until the last process leaves. */
static void process_unpublish(void) {
    if (gps_membership_lease())
        gps_membership_end(gps_teardown_unpublish);
    else
        gps_leak_report_end();
}

static void process_withdraw(void) {
    GPS_SCOPE();
    process_unpublish();
    gps_rules_end();
    gps_log_summary();
    gps_event_log_write(&(struct gps_event_line){.what = "ended"});
    gps_call_counter_end();
}

__attribute__((destructor)) static void on_unload(void) {
    leave_it_to_another();
    if (gps_process_phase() == GPS_PHASE_ON && !call_is_interrupted() &&
        gps_process_set_phase(GPS_PHASE_ENDED) == GPS_PHASE_ON)
        process_withdraw();
}

void gps_lifecycle_end(void) {
    leave_it_to_another();
    if (gps_process_phase() != GPS_PHASE_ON || is_hurried())
        return;
    if (gps_process_leave()) {
        tear_down();
        process_withdraw();
    } else {
        gps_lifecycle_stay();
    }
}

void gps_lifecycle_stay(void) {
    while (gps_process_left())
        pause();
}
