/* close_before_free.c - see close_before_free.h. A free begins in the last function. */
#include "close_before_free.h"

#include <errno.h>

#include "deferred.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "export.h"
#include "findings/audit_record.h"
#include "findings/policy.h"
#include "findings/reporter.h"
#include "importers.h"
#include "process/process.h"
#include "registry/freed_history.h"
#include "stack/trace.h"

/* One free of the program's. */
struct freeing {
    const struct gps_alloc *alloc;
    struct gps_export *region;
    struct gps_release release;
    enum gps_state was; /* the published state before it */
};

static struct gps_answer free_ask_policy(const struct gps_export *region, bool waited) {
    const struct gps_options *options = &gps_process_config()->options;
    return gps_policy(&(struct gps_question){.ask = GPS_ASK_FREE,
                                             .known = gps_policy_known(region),
                                             .mode = options->mode,
                                             .on_free = options->on_free,
                                             .waited = waited,
                                             .exiting = gps_deferred_stopped()});
}

/* A refused free takes nothing back: while there is an importer the region stays open to others. */
static bool free_is_refused(const struct gps_export *region) {
    const struct gps_options *options = &gps_process_config()->options;
    return options->mode == GPS_MODE_SHARE && options->on_free == GPS_FREE_REFUSE &&
           gps_importers_any(region);
}

/* Publishes that the region closes, and only then looks for importers; an open writes its intent,
 * and only then reads the region's state (import.h). */
static struct gps_answer close_and_ask(struct gps_export *region, bool waited) {
    struct gps_party users[GPS_USERS_REPORTED];
    if (gps_export_becomes_result(region))
        return free_ask_policy(region, waited);
    const bool closed = gps_process_config()->options.mode != GPS_MODE_SHARE ||
                        free_is_refused(region) || gps_export_close_unheld(region);
    const int count = closed ? gps_importers_find(region, users, GPS_USERS_REPORTED) : -EIO;
    if (!closed)
        region->users = (struct gps_export_users){.held = true};
    if (gps_record_over(&region->record) && gps_export_is_used(region))
        (void)gps_export_close(region); /* should that fail, the reaper tries again */
    const struct gps_answer answer = free_ask_policy(region, waited);
    if (answer.finding != GPS_NO_FINDING)
        gps_report_held(region, &answer, users, count);
    return answer;
}

/* Whether the driver frees the region now, or the free is refused. */
static bool free_is_decided(const struct gps_answer *answer) {
    return answer->verdict == GPS_FORWARD || answer->verdict == GPS_DENY;
}

/* While this thread waits or synchronises, another thread's free finds the region in the list. */
static struct gps_answer decide(struct gps_export *region) {
    struct gps_answer answer = close_and_ask(region, false);
    if (free_is_decided(&answer))
        return answer;
    gps_deferred_add(region);
    if (region->users.cached) {
        gps_importers_wait_for_caches(region);
        answer = close_and_ask(region, false);
    }
    if (answer.verdict == GPS_WAIT) {
        gps_importers_wait(region, gps_process_config()->options.free_timeout);
        answer = close_and_ask(region, true);
    }
    if (free_is_decided(&answer))
        gps_deferred_remove(region);
    return answer;
}

/* CLOSING -> LIVE: the memory stays, and the region is what it was. */
static void keep_live(const struct freeing *of) {
    if (of->region->record.status.state != (uint32_t)of->was)
        gps_export_set_state(of->region, of->was, 0);
    gps_export_become(of->region, GPS_EXPORT_LIVE);
    gps_registry_add(of->alloc);
}

/* LIVE -> CLOSING. */
static struct gps_answer free_begin(const struct freeing *of) {
    const uint32_t freed = gps_trace_kept();
    GPS_SCOPE();
    gps_export_become(of->region, GPS_EXPORT_CLOSING);
    gps_freed_note_allocation(of->alloc, freed); /* until the address is recorded again */
    gps_audit_region_publish(of->region, freed);
    const struct gps_answer answer = decide(of->region);
    if (answer.verdict == GPS_DENY)
        keep_live(of);
    else if (answer.verdict != GPS_HAND_OVER)
        gps_export_unname(of->region);
    return answer;
}

/* CLOSING -> GONE. The driver's free is the program's call, with its signals and capture mode. */
static int free_now(const struct freeing *of) {
    const int code = of->release.call(of->alloc->pointer, of->release.stream);
    GPS_SCOPE();
    if (code == GPS_OK) {
        gps_export_end(of->region);
    } else {
        gps_export_rename(of->region);
        keep_live(of);
    }
    return code;
}

/* CLOSING -> DEFERRED or RESULT, unless a capture forbids frees. A stream's free never waits. */
static int defer(const struct freeing *of, bool result) {
    struct gps_scope scope;
    const int asked =
        of->release.call(0, of->release.stream); /* before the scope relaxes captures */
    int code = gps_scope_enter(&scope, of->alloc->context);
    if (gps_code_is_of_capture(asked))
        code = asked;
    else if (code == GPS_OK && (result || !of->release.ordered))
        code = gps_scope_synchronize();
    const bool lost = code == GPS_OK && !gps_deferred_leave(of->region, result);
    if (code != GPS_OK || lost)
        gps_deferred_remove(of->region);
    if (lost) {
        gps_export_end(of->region);
    } else if (code != GPS_OK) {
        gps_export_rename(of->region);
        keep_live(of);
    }
    gps_scope_end(&scope);
    return lost ? of->release.call(of->alloc->pointer, of->release.stream) : code;
}

int gps_close_before_free(const struct gps_alloc *alloc, struct gps_release release) {
    const struct freeing of = {.alloc = alloc,
                               .region = alloc->region,
                               .release = release,
                               .was = (enum gps_state)alloc->region->record.status.state};
    const struct gps_answer answer = free_begin(&of);
    switch (answer.verdict) {
    case GPS_DENY:
        return answer.code;
    case GPS_FORWARD:
        return free_now(&of);
    default:
        return defer(&of, answer.verdict == GPS_HAND_OVER);
    }
}
