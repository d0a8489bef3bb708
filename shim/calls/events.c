#include "events.h"

#include "driver/driver_ops.h"
#include "driver/passing.h"
#include "driver/scope.h"
#include "findings/audit_record.h"
#include "findings/diagnose.h"
#include "findings/policy.h"
#include "findings/reporter.h"
#include "handles.h"
#include "process/membership.h"
#include "process/references.h"
#include "registry/freed_history.h"
#include "stack/trace.h"
#include "util/clock.h"

static struct gps_event made(uint64_t address) {
    struct gps_event event = {.event = address,
                              .slot = GPS_NO_SLOT,
                              .era = gps_registry_era(),
                              .trace = gps_trace_kept()};
    gps_ops->context(&event.context);
    if (gps_process_audits())
        event.since = gps_clock_now();
    return event;
}

/* Records the event, so that its uses are looked at from now on. */
static bool event_keep(const struct gps_event *event) {
    const bool kept = gps_registry_add_event(event);
    gps_watch();
    return kept;
}

static void end_reference(const struct gps_event *event) {
    if (event->slot == GPS_NO_SLOT)
        return;
    GPS_SCOPE();
    gps_report_reference(gps_references_end(event->slot));
}

/* An event still recorded at the address of a new one was destroyed by an unhooked call. */
static void event_forget(uint64_t event) {
    struct gps_event stale;
    gps_freed_forget(GPS_FREED_EVENT, event);
    if (gps_registry_take_event(event, &stale))
        end_reference(&stale);
}

void gps_event_created(int code, uint64_t address, enum gps_event_kind kind) {
    if (code != GPS_OK && kind != GPS_EVENT_PRIVATE)
        gps_diagnose_create_event(kind == GPS_EVENT_SHARED_AND_TIMED, code);
    if (code != GPS_OK)
        return;
    event_forget(address);
    if (kind == GPS_EVENT_PRIVATE)
        return;
    const struct gps_event event = made(address);
    event_keep(&event);
}

static void exported(uint64_t event, const uint8_t handle[GPS_HANDLE_BYTES]) {
    struct gps_event known;
    if (!gps_registry_find_event(event, &known)) {
        known = made(event);
        known.trace = GPS_NO_TRACE; /* this is not where it was created */
    } else if (known.exported || known.opened) {
        return;
    }
    known.exported = true;
    known.exported_at = gps_trace_kept();
    known.since = gps_process_audits() ? gps_clock_now() : 0;
    known.id = gps_id_of_handle(handle);
    GPS_SCOPE();
    gps_membership_join(); /* a process that cannot open it looks for this one there */
    gps_audit_event_exported(&known, handle);
    event_keep(&known); /* after the report: another thread's export of it is reported, too */
}

/* A driver may give the handle of a destroyed event all the same. */
bool gps_event_used(uint64_t event) {
    struct gps_freed destroyed;
    const bool is = event && gps_freed_find(GPS_FREED_EVENT, event, &destroyed);
    if (is)
        gps_diagnose_destroyed_event(GPS_ASK_EVENT_USED, event, &destroyed);
    return is;
}

int gps_event_export(uint64_t event, uint8_t handle[GPS_HANDLE_BYTES], gps_event_handle_fn *get) {
    if (!handle)
        gps_handle_no_output();
    const bool destroyed = gps_event_used(event);
    const int code = get(event, handle);
    if (code == GPS_OK && handle && !destroyed)
        exported(event, handle);
    else if (code != GPS_OK && handle && !destroyed)
        gps_diagnose_export_event(event, code);
    return code;
}

static void opened(uint64_t event, const uint8_t handle[GPS_HANDLE_BYTES]) {
    struct gps_event opened = made(event);
    opened.id = gps_id_of_handle(handle);
    opened.opened = true;
    event_forget(event);
    GPS_SCOPE();
    gps_report_reference(gps_references_begin(&opened.id, GPS_VIA_EVENT, &opened.slot));
    gps_report_reference(gps_references_commit(opened.slot, &opened.id, GPS_VIA_EVENT, event, 0,
                                               gps_audit_place(opened.trace)));
    if (!event_keep(&opened))
        end_reference(&opened); /* its end will not be seen */
    gps_diagnose_opened_event(&opened, handle);
}

int gps_event_open(const uint8_t handle[GPS_HANDLE_BYTES], uint64_t *event,
                   gps_event_open_fn *open) {
    if (!event)
        gps_handle_no_output();
    const int code = open(handle, event);
    if (code == GPS_OK && event)
        opened(*event, handle);
    else if (code != GPS_OK && event)
        gps_diagnose_open_event(handle, code);
    return code;
}

/* --- destroying --- */

static int users_of(const struct gps_event *event, struct gps_party *users) {
    GPS_SCOPE();
    return event->exported && gps_membership_join() == 0
               ? gps_references_users(&event->id, users, GPS_USERS_REPORTED, NULL)
               : 0;
}

static void report_held(const struct gps_event *event, const struct gps_party *users, int count) {
    struct gps_report report = gps_report_on(GPS_ASK_NOTED_DESTROY, GPS_KNOWN_HELD);
    report.pointer = event->event;
    gps_report_users(&report, users, count);
    gps_report_prior(&report, "created", event->trace);
    gps_report_prior(&report, "exported", event->exported_at);
    gps_report_send(&report);
}

/* The report comes first: the driver may not return. */
static int destroy_again(uint64_t event, struct gps_freed freed, gps_event_fn *destroy) {
    const struct gps_answer answer = gps_answer_on(GPS_ASK_DESTROY, GPS_KNOWN_FREED);
    gps_diagnose_destroyed_event(GPS_ASK_DESTROY, event, &freed);
    return answer.verdict == GPS_DENY ? answer.code : destroy(event);
}

/* An event of this process that others know, or of another process. */
static int destroy_shared(const struct gps_event *event, gps_event_fn *destroy) {
    struct gps_party users[GPS_USERS_REPORTED];
    const int count = users_of(event, users);
    const int code = destroy(event->event);
    GPS_SCOPE();
    if (code != GPS_OK)
        event_keep(event);
    else if (event->opened)
        gps_report_reference(gps_references_end(event->slot));
    if (code == GPS_OK) {
        gps_diagnose_ended_event(event);
        gps_audit_event_destroyed(event, gps_trace_kept());
    }
    if (code == GPS_OK && count > 0)
        report_held(event, users, count);
    return code;
}

int gps_event_destroy(uint64_t event, gps_event_fn *destroy) {
    struct gps_event known = {.trace = GPS_NO_TRACE};
    struct gps_freed freed;
    if (!event)
        return destroy(event);
    if (gps_freed_find(GPS_FREED_EVENT, event, &freed))
        return destroy_again(event, freed, destroy);
    const bool shared = gps_registry_take_event(event, &known);
    gps_freed_note(GPS_FREED_EVENT, event,
                   (struct gps_freed){.born = known.trace, .ended = gps_trace_kept()});
    const int code = shared ? destroy_shared(&known, destroy) : destroy(event);
    if (code != GPS_OK)
        gps_freed_forget(GPS_FREED_EVENT, event);
    return code;
}

/* --- uses, which only audits see --- */

void gps_event_waited(uint64_t event) {
    struct gps_event known;
    if (gps_event_used(event) || !gps_registry_find_event(event, &known) || known.waited)
        return;
    gps_registry_note_event(event, gps_trace_kept(), &known);
}

void gps_event_recorded(uint64_t event) {
    struct gps_event known;
    if (!gps_registry_note_event(event, GPS_NO_TRACE, &known) || !(known.exported || known.opened))
        return;
    GPS_SCOPE();
    gps_audit_event_recorded(&known.id);
}
