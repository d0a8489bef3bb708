/* close_before_free.c - see close_before_free.h. The way of one cudaFree begins at the end. */
#include "close_before_free.h"

#include <errno.h>

#include "deferred.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "export.h"
#include "findings/policy.h"
#include "findings/region_history.h"
#include "findings/reporter.h"
#include "importers.h"
#include "process/process.h"
#include "region_events.h"
#include "registry/freed_history.h"
#include "stack/trace.h"

static struct gps_answer ask(enum gps_known known, bool waited) {
    const struct gps_options *options = &gps_process_config()->options;
    return gps_policy(&(struct gps_question){.ask = GPS_ASK_FREE,
                                             .known = known,
                                             .mode = options->mode,
                                             .on_free = options->on_free,
                                             .waited = waited,
                                             .exiting = gps_process_exiting()});
}

/* Refusing takes nothing back: while there is an importer the region stays open to others. */
static bool is_refused(const struct gps_export *region) {
    const struct gps_options *options = &gps_process_config()->options;
    return options->mode == GPS_MODE_SHARE && options->on_free == GPS_FREE_REFUSE &&
           gps_importers_any(region);
}

/* Closes the region first and looks for importers then: see import.h for the other half. */
static struct gps_answer ask_about(struct gps_export *region, bool waited) {
    struct gps_party users[GPS_USERS_REPORTED];
    struct gps_cache_holders holders = {0};
    if (region->rule && region->rule->ready == GPS_READY_FREE && !region->final)
        return ask(GPS_KNOWN_RESULT, waited);
    const bool closed = gps_process_config()->options.mode != GPS_MODE_SHARE ||
                        is_refused(region) || gps_export_close_unheld(region);
    const int count =
        closed ? gps_importers_and_cache_holders(region, users, GPS_USERS_REPORTED, &holders)
               : -EIO;
    region->cached = count == 0 && holders.count > 0;
    if (gps_record_over(&region->record) && (count || region->cached))
        (void)gps_export_close(region); /* else the reaper tries again */
    const struct gps_answer answer = ask(count            ? GPS_KNOWN_HELD
                                         : region->cached ? GPS_KNOWN_CACHED
                                                          : GPS_KNOWN_EXPORTED,
                                         waited);
    if (answer.finding != GPS_NO_FINDING)
        gps_report_held(region, &answer, users, count);
    return answer;
}

/* While this thread waits or synchronises, another one's free must find the region somewhere. */
static struct gps_answer ask_and_wait(struct gps_export *region) {
    struct gps_answer answer = ask_about(region, false);
    const bool puts_off = answer.verdict != GPS_FORWARD && answer.verdict != GPS_DENY;
    if (puts_off)
        gps_deferred_add(region, true);
    if (puts_off && region->cached) {
        gps_importers_let_go(region);
        answer = ask_about(region, false);
    }
    if (answer.verdict == GPS_WAIT) {
        gps_importers_wait(region, gps_process_config()->options.free_timeout);
        answer = ask_about(region, true);
    }
    if (puts_off && (answer.verdict == GPS_FORWARD || answer.verdict == GPS_DENY))
        gps_deferred_remove(region);
    return answer;
}

/* The memory stays: the region is what it was. */
static void put_back(const struct gps_alloc *alloc, enum gps_state was) {
    if (alloc->region->record.status.state != (uint32_t)was)
        gps_export_set_state(alloc->region, was, 0);
    gps_registry_add(alloc);
}

static struct gps_answer prepare(const struct gps_alloc *alloc, enum gps_state was) {
    struct gps_scope scope;
    const uint32_t freed = gps_trace_kept();
    gps_scope_begin(&scope);
    /* until it is allocated again, or put back */
    gps_freed_note_allocation(alloc, freed);
    gps_region_history_publish(alloc->region, freed);
    const struct gps_answer answer = ask_and_wait(alloc->region);
    if (answer.verdict == GPS_DENY)
        put_back(alloc, was);
    else if (answer.verdict != GPS_HAND_OVER)
        gps_export_unname(alloc->region);
    gps_scope_end(&scope);
    return answer;
}

/* The driver's free is the program's own call: signals and capture mode are as it left them. */
static int free_now(const struct gps_alloc *alloc, enum gps_state was,
                    struct gps_release release_by) {
    const int code = release_by.call(alloc->pointer, release_by.stream);
    struct gps_scope scope;
    gps_scope_begin(&scope);
    if (code == GPS_OK) {
        gps_export_end(alloc->region);
    } else {
        gps_export_rename(alloc->region);
        put_back(alloc, was);
    }
    gps_scope_end(&scope);
    return code;
}

static void defer(struct gps_export *region, bool result) {
    gps_region_event_put_off(region, result);
    if (result)
        gps_export_make_final(region);
    gps_deferred_leave(region);
}

static int put_off(const struct gps_alloc *alloc, enum gps_state was, bool result, bool ordered) {
    struct gps_scope scope;
    int code = gps_scope_enter(&scope, alloc->context);
    if (code == GPS_OK && (result || !ordered)) /* a free on a stream waits for nothing */
        code = gps_scope_synchronize();
    if (code == GPS_OK) {
        defer(alloc->region, result);
    } else {
        gps_deferred_remove(alloc->region);
        gps_export_rename(alloc->region);
        put_back(alloc, was);
    }
    gps_scope_end(&scope);
    return code;
}

int gps_close_before_free(const struct gps_alloc *alloc, struct gps_release release_by) {
    const enum gps_state was = (enum gps_state)alloc->region->record.status.state;
    const struct gps_answer answer = prepare(alloc, was);
    switch (answer.verdict) {
    case GPS_DENY:
        return answer.code;
    case GPS_FORWARD:
        return free_now(alloc, was, release_by);
    default:
        return put_off(alloc, was, answer.verdict == GPS_HAND_OVER, release_by.ordered);
    }
}
