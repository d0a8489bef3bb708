/* teardown.c - see teardown.h. */
#include "teardown.h"

#include "audit/policy.h"
#include "audit/reporter.h"
#include "defer.h"
#include "export.h"
#include "lifecycle/lifecycle.h"
#include "process/ops.h"
#include "process/watch.h"
#include "util/clock.h"
#include "vmm/vmm_region.h"
#include "waiting.h"

enum { SHOWN_USERS = 16 };

/* --- bringing together what is still exported --- */

static void make_final(struct gps_export *region) {
    struct gps_scope scope;
    if (gps_scope_enter(&scope, region->context) == GPS_OK)
        gps_ops->synchronize();
    gps_scope_end(&scope);
    region->final = true;
    gps_export_set_state(region, GPS_STATE_FINAL, gps_clock_now() + region->rule->handover);
}

static void bring(void *arg, struct gps_alloc *alloc) {
    (void)arg;
    struct gps_export *region = alloc->region;
    region->leaving = true;
    if (region->rule && region->rule->ready == GPS_READY_FREE)
        make_final(region); /* the program never freed it: that it ends says the same */
    gps_waiting_add(region, false);
}

/* --- waiting for importers --- */

/* How long this region is waited for at most: a result until the end of its hand-over. */
static uint64_t time_left(const struct gps_export *region, uint64_t linger_until) {
    const bool result = region->final && !region->claimed;
    const uint64_t now = result ? gps_clock_now() : gps_clock_monotonic();
    const uint64_t until = result ? region->record.status.until : linger_until;
    return until > now ? until - now : 0;
}

static bool is_awaited(const struct gps_export *region, uint64_t left) {
    const struct gps_options *options = &gps_life_config()->options;
    const bool result = region->final && !region->claimed;
    const struct gps_question question = {.ask = GPS_ASK_EXIT,
                                          .known = result         ? GPS_KNOWN_RESULT
                                                   : region->held ? GPS_KNOWN_HELD
                                                                  : GPS_KNOWN_NOTHING,
                                          .mode = options->mode,
                                          .waited = left == 0,
                                          .linger = options->linger != 0};
    return gps_policy(&question).verdict == GPS_WAIT;
}

/* How long there still is something to wait for; 0: nothing. */
static uint64_t patience(uint64_t context, uint64_t linger_until) {
    uint64_t left = 0;
    struct gps_export *region = gps_waiting_take(context, GPS_PATIENT), *next;
    for (; region; region = next) {
        next = region->work;
        const uint64_t more = time_left(region, linger_until);
        if (is_awaited(region, more))
            left = !left || more < left ? more : left;
        gps_waiting_put_back(region);
    }
    gps_waiting_done();
    return left;
}

static void settle(uint64_t context, const sigset_t *signals) {
    const uint64_t linger_until = gps_clock_monotonic() + gps_life_config()->options.linger;
    gps_registry_take_exports(context, bring, NULL);
    uint64_t left = patience(context, linger_until);
    if (!left)
        return;
    struct gps_watch watch;
    gps_watch_open(&watch, gps_life_store(), GPS_WATCH_PROCS);
    while ((left = patience(context, linger_until)) != 0)
        gps_watch_wait(&watch, left, signals);
    gps_watch_close(&watch);
}

/* --- the end of the process --- */

static void report_at_exit(struct gps_export *region) {
    struct gps_party users[SHOWN_USERS];
    const struct gps_question question = {.ask = GPS_ASK_EXIT,
                                          .known = GPS_KNOWN_HELD,
                                          .mode = gps_life_config()->options.mode,
                                          .waited = true};
    if (region->final && !region->claimed && !region->held)
        gps_defer_report_unclaimed(region);
    if (!region->held || region->final)
        return; /* a result that somebody holds has reached its goal */
    const unsigned count = gps_export_users(region, users, SHOWN_USERS);
    struct gps_report report = gps_report_new(gps_policy(&question).finding);
    gps_report_about_export(&report, region);
    report.others = users;
    report.other_count = count < SHOWN_USERS ? count : SHOWN_USERS;
    gps_report_send(&report);
    region->reported = true;
}

void gps_teardown_exit(const sigset_t *signals) {
    gps_defer_stop();
    gps_vmm_region_stop();
    settle(0, signals);
    struct gps_export *region = gps_waiting_take(0, GPS_PATIENT), *next;
    for (; region; region = next) {
        next = region->work;
        report_at_exit(region);
        gps_waiting_put_back(region);
    }
    gps_waiting_done();
}

static void leave(void *arg, struct gps_alloc *alloc) {
    (void)arg;
    gps_export_leave(alloc->region, true);
}

void gps_teardown_unpublish(bool last) {
    struct gps_export *region = gps_waiting_take(0, GPS_PATIENT), *next;
    for (; region; region = next) {
        next = region->work;
        gps_waiting_remove(region);
        if (region->leaving && !region->reported && !region->final)
            gps_leak_add_export(region);
        gps_export_leave(region, !last && (region->leaving || region->held));
    }
    gps_waiting_done();
    gps_registry_take_exports(0, leave, NULL); /* exported after the exit began */
    gps_leak_report_end();
    gps_export_remove_tombstones();
}

/* --- the end of a context --- */

struct gps_export *gps_teardown_context(uint64_t context, bool wait, const sigset_t *signals) {
    if (wait)
        settle(context, signals);
    return gps_waiting_take(context, GPS_VERY_PATIENT);
}

/* The driver refused to destroy the context: what was brought here lives on. */
static void return_to_registry(struct gps_export *region) {
    const struct gps_alloc alloc = {.pointer = region->pointer,
                                    .size = region->record.requested,
                                    .context = region->context,
                                    .epoch = gps_registry_now(),
                                    .trace = region->allocated,
                                    .device = (int16_t)region->device,
                                    .kind = GPS_ALLOC_EXPORTED,
                                    .region = region};
    region->leaving = false;
    gps_waiting_remove(region);
    gps_registry_add(&alloc);
}

void gps_teardown_context_done(struct gps_export *region, bool gone, struct gps_reset *reset) {
    struct gps_export *next;
    for (; region; region = next) {
        next = region->work;
        if (gone) {
            gps_waiting_remove(region);
            if (region->leaving && !region->final)
                gps_leak_reset_export(reset, region);
            gps_export_end(region);
        } else if (region->leaving && !region->final) {
            return_to_registry(region);
        } else {
            gps_waiting_put_back(region);
        }
    }
    gps_waiting_done();
}
