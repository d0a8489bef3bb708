/* defer.c - see defer.h. */
#include "defer.h"

#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "audit/reporter.h"
#include "export.h"
#include "lifecycle/lifecycle.h"
#include "process/ops.h"
#include "process/thread.h"
#include "process/watch.h"
#include "util/clock.h"
#include "waiting.h"

static struct {
    pthread_mutex_t lock;
    bool reaping; /* the thread runs */
    bool stop;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- one pass: free what is due --- */

void gps_defer_report_unclaimed(const struct gps_export *region) {
    struct gps_report report = gps_report_new(GPS_SHARE_TIMEOUT);
    gps_report_about_export(&report, region);
    report.detail = "no importer took the result within its hand-over time; it was freed";
    gps_report_send(&report);
}

/* Whether the memory can go now. A result waits to be claimed, then to be let go of. */
static bool is_due(struct gps_export *region) {
    if (region->leaving || region->held)
        return false;
    if (!region->final || region->claimed)
        return true;
    return gps_clock_now() >= region->record.status.until;
}

/* A result is open to importers until now: close it, then look once more. */
static bool close_result(struct gps_export *region) {
    gps_export_unname(region);
    gps_export_set_state(region, GPS_STATE_CLOSING, 0);
    region->held = gps_export_users(region, NULL, 0) != 0;
    if (!region->held && !region->claimed)
        gps_defer_report_unclaimed(region);
    region->final = false; /* from here on it waits like any other freed region */
    return !region->held;
}

static void release(const struct gps_export *region) {
    struct gps_scope scope;
    if (gps_scope_enter(&scope, region->context) == GPS_OK)
        gps_ops->release(region->pointer);
    gps_scope_end(&scope);
}

static bool stopped(void) {
    pthread_mutex_lock(&state.lock);
    const bool stop = state.stop;
    pthread_mutex_unlock(&state.lock);
    return stop;
}

static void pass(enum gps_patience patience) {
    struct gps_export *region = gps_waiting_take(0, patience), *next;
    for (; region; region = next) {
        next = region->work;
        if (stopped() || !is_due(region) || (region->final && !close_result(region))) {
            gps_waiting_put_back(region);
            continue;
        }
        release(region);
        gps_waiting_remove(region); /* after the free: until then a second one must not pass */
        gps_export_end(region);
    }
    gps_waiting_done();
}

/* --- the reaper --- */

static bool nothing_left(void) {
    pthread_mutex_lock(&state.lock);
    const bool nothing = state.stop || !gps_waiting_any();
    if (nothing)
        state.reaping = false;
    pthread_mutex_unlock(&state.lock);
    return nothing;
}

static void *reap(void *unused) {
    const struct timespec breath = {.tv_nsec = 5000000}; /* many changes at once are one */
    struct gps_watch watch;
    prctl(PR_SET_NAME, "gpushare-reaper");
    gps_watch_open(&watch, gps_life_store(), GPS_WATCH_PROCS);
    while (!nothing_left()) {
        pass(GPS_HASTY);
        const uint64_t end = gps_waiting_next_end(), now = gps_clock_now();
        gps_watch_wait(&watch, end > now ? end - now : 0, NULL);
        nanosleep(&breath, NULL);
    }
    gps_watch_close(&watch);
    return unused;
}

/* Should it not start, the next deferral tries again. */
static void start_reaper(void) {
    pthread_mutex_lock(&state.lock);
    if (!state.reaping && !state.stop)
        state.reaping = gps_thread_start(reap);
    pthread_mutex_unlock(&state.lock);
}

void gps_defer_add(struct gps_export *region) {
    gps_waiting_put_back(region);
    start_reaper();
}

void gps_defer_result(struct gps_export *region) {
    region->final = true;
    gps_export_set_state(region, GPS_STATE_FINAL, gps_clock_now() + region->rule->handover);
    gps_defer_add(region);
}

bool gps_defer_relieve(void) {
    if (!gps_waiting_any())
        return false;
    struct gps_scope scope;
    gps_scope_begin(&scope);
    pass(GPS_PATIENT); /* what the reaper is freeing right now is memory, too */
    gps_scope_end(&scope);
    return true; /* in any case: the reaper may have freed it before we looked */
}

void gps_defer_wait(const struct gps_export *region, uint64_t nanos, const sigset_t *signals) {
    const uint64_t until = gps_clock_monotonic() + nanos;
    struct gps_watch watch;
    gps_watch_open(&watch, gps_life_store(), GPS_WATCH_PROCS);
    while (gps_export_users(region, NULL, 0)) {
        const uint64_t now = gps_clock_monotonic();
        if (now >= until)
            break;
        gps_watch_wait(&watch, until - now, signals);
    }
    gps_watch_close(&watch);
}

void gps_defer_stop(void) {
    pthread_mutex_lock(&state.lock);
    state.stop = true;
    pthread_mutex_unlock(&state.lock);
    struct gps_export *region = gps_waiting_take(0, GPS_PATIENT),
                      *next; /* after the pass under way */
    for (; region; region = next) {
        next = region->work;
        gps_waiting_put_back(region);
    }
    gps_waiting_done();
}

void gps_defer_reset(void) {
    memset((void *)&state, 0, sizeof(state));
    gps_waiting_reset();
}
