/* parent.c - the parent of a forked child, for its reports; see lifecycle.h. */
#include <pthread.h>
#include <stdatomic.h>

#include "driver/scope.h"
#include "findings/reporter.h"
#include "lifecycle.h"
#include "process/process.h"
#include "stack/call.h"
#include "stack/stack.h"
#include "stack/trace.h"

static struct {
    struct gps_party parent; /* if that used the driver */
    uint32_t parents_first, parents_fork;
    bool sees_forks;
    /* In audits, traces: the first call that worked, the last fork. */
    _Atomic uint32_t first, forked;
} state;

/* Notes the fork. A thread may fork in a signal handler, or in a call of ours that this
 * interrupted: then it takes no trace, for which it might wait. */
static void note_fork(void) {
    const struct gps_site site = GPS_SITE_HERE;
    if (!gps_call.inside && !gps_stack_in_handler())
        state.forked = gps_trace_at(site);
}

void gps_parent_watch_forks(void) {
    state.sees_forks = state.sees_forks || pthread_atfork(note_fork, NULL, NULL) == 0;
}

void gps_parent_note_first(void) {
    uint32_t none = GPS_NO_TRACE;
    if (!state.first)
        atomic_compare_exchange_strong(&state.first, &none, gps_trace_kept());
}

void gps_parent_begin(bool used) {
    if (used)
        state.parent = (struct gps_party){.owner = *gps_process_self()};
    state.parents_first = state.first;
    state.parents_fork = state.forked;
    state.first = GPS_NO_TRACE;
}

void gps_lifecycle_not_initialized(void) {
    if (!state.parent.owner.pid)
        return;
    GPS_SCOPE();
    struct gps_report report = gps_report_on(GPS_ASK_FORKED, GPS_KNOWN_NOTHING);
    gps_report_users(&report, &state.parent, 1);
    gps_report_prior(&report, "initialized", state.parents_first);
    gps_report_prior(&report, "forked", state.parents_fork);
    for (unsigned i = 0; i < report.prior_count; i++)
        report.prior[i].owner = &state.parent.owner;
    gps_report_send(&report);
}
