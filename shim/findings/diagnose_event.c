/* diagnose_event.c - see diagnose.h: events of other processes. */

#include "audit_record.h"
#include "diagnose.h"
#include "directory/processes.h"
#include "directory/region.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "other_processes.h"
#include "process/membership.h"
#include "process/process.h"
#include "registry/freed_history.h"
#include "reporter.h"

static void report_event(enum gps_ask ask, enum gps_known known, const struct gps_event *event,
                         struct gps_text *detail, int code) {
    struct gps_report report = gps_report_on(ask, known);
    if (report.finding == GPS_NO_FINDING)
        return;
    report.pointer = event->event;
    report.detail = detail->length ? detail->bytes : NULL;
    if (report.finding == GPS_IPC_CALL_FAILED)
        gps_report_code(&report, detail, code);
    gps_report_prior(&report, event->opened ? "opened" : "created", event->trace);
    gps_report_prior(&report, "exported", event->exported_at);
    gps_report_send(&report);
}

/* --- created, and exported --- */

static enum gps_known event_export_known(struct gps_event *event, int code) {
    const uint64_t address = event->event;
    struct gps_freed freed;
    if (code != GPS_INVALID_HANDLE)
        return gps_known_of_code(code);
    if (gps_registry_find_event(address, event))
        return event->opened ? GPS_KNOWN_IMPORTED : GPS_KNOWN_LIVE;
    return gps_freed_find(GPS_FREED_EVENT, address, &freed) ? GPS_KNOWN_LIVE : GPS_KNOWN_FLAGS;
}

void gps_diagnose_export_event(uint64_t event, int code) {
    GPS_NEW_TEXT(text, 256);
    struct gps_event known = {.event = event};
    GPS_DRIVER_SCOPE();
    report_event(GPS_ASK_EVENT_SHARED, event_export_known(&known, code), &known, &text, code);
}

void gps_diagnose_create_event(bool timed, int code) {
    GPS_NEW_TEXT(text, 256);
    GPS_DRIVER_SCOPE();
    const bool flags = timed && code == GPS_INVALID_VALUE;
    if (flags)
        gps_text_add(&text, "%s was given without %s", gps_ops->names->event_shared,
                     gps_ops->names->event_untimed);
    report_event(GPS_ASK_EVENT_SHARED, flags ? GPS_KNOWN_FLAGS : gps_known_of_code(code),
                 &(struct gps_event){.event = 0}, &text, code);
}

/* --- opened --- */

/* The driver's files of events lie in /dev/shm. */
static bool is_apart(int code, struct gps_text *detail) {
    if (code != GPS_MAP_FAILED || !gps_other_processes_look().has_other_shm)
        return false;
    gps_text_str(detail, "an event lives in a file of /dev/shm, and a process of the published "
                         "directory has another /dev/shm than this one (give both containers one: "
                         "--ipc, or a common mount)");
    return true;
}

/* The driver compares pids alone. */
static enum gps_known event_taken_for_own(struct gps_text *detail) {
    if (!gps_other_processes_look().has_our_pid) {
        gps_text_str(detail, "the driver takes it for this process's own: it was, or its creator "
                             "has the same pid in another pid namespace");
        return GPS_KNOWN_NOTHING;
    }
    gps_text_str(detail, "the driver tells processes apart by their pid alone, and the process "
                         "that created the event has the same one in another container (start both "
                         "by gpushare run with --cap-add CHECKPOINT_RESTORE, or give both "
                         "containers one pid namespace: --pid)");
    return GPS_KNOWN_NAMESPACE;
}

/* The kind of handle that it is instead, where that can be told. */
static enum gps_known event_handle_unknown(const uint8_t handle[GPS_HANDLE_BYTES],
                                           const struct gps_id *id, int code,
                                           struct gps_text *detail) {
    struct gps_region_record memory;
    gps_text_add(detail, "the driver's code is %lu", (uint64_t)(unsigned)code);
    if (gps_handle_is_zero_from(handle, 0))
        gps_text_str(detail, "; all bytes of the handle are 0");
    else if (gps_membership_store() &&
             gps_region_read(gps_membership_store(), id, &memory, NULL) == 0)
        gps_text_add(detail, "; it is a handle of memory, of %s (pid %u)",
                     gps_record_creator(&memory)->command, gps_record_creator(&memory)->pid);
    return GPS_KNOWN_NOTHING;
}

/* The event's state by its exporter's record, in an audit. */
static enum gps_known known_of_record(const struct gps_region_record *record) {
    return gps_record_over(record) ? GPS_KNOWN_STALE
           : gps_lease_probe(gps_membership_store(), &record->owner) == GPS_DEAD
               ? GPS_KNOWN_DEAD_OWNER
               : GPS_KNOWN_LIVE;
}

static void report_record(enum gps_ask ask, enum gps_known known, const struct gps_event *event,
                          const struct gps_region_record *record) {
    const struct gps_party creator = {.owner = record->owner};
    struct gps_report report = gps_report_on(ask, known);
    report.pointer = event->event;
    gps_report_users(&report, &creator, 1);
    gps_report_prior(&report, "opened", event->trace);
    gps_report_prior(&report, "waited", event->waited);
    gps_report_send_with(&report, record);
}

static enum gps_known known_of_open(const uint8_t handle[GPS_HANDLE_BYTES], int code,
                                    struct gps_event *own, struct gps_text *detail) {
    const struct gps_id id = gps_id_of_handle(handle);
    const enum gps_known by_code = gps_known_of_code(code);
    if (by_code != GPS_KNOWN_LIVE)
        return by_code;
    if (is_apart(code, detail))
        return GPS_KNOWN_NAMESPACE;
    if (code == GPS_INVALID_CONTEXT)
        return gps_registry_exported_event(&id, own) ? GPS_KNOWN_OWN : event_taken_for_own(detail);
    return code == GPS_INVALID_VALUE || code == GPS_INVALID_HANDLE || code == GPS_MAP_FAILED
               ? event_handle_unknown(handle, &id, code, detail)
               : GPS_KNOWN_LIVE;
}

void gps_diagnose_open_event(const uint8_t handle[GPS_HANDLE_BYTES], int code) {
    GPS_NEW_TEXT(text, 384);
    struct gps_event own = {.event = 0};
    struct gps_region_record record;
    const struct gps_id id = gps_id_of_handle(handle);
    GPS_DRIVER_SCOPE();
    gps_membership_join(); /* processes that have handles are found there */
    enum gps_known known = known_of_open(handle, code, &own, &text);
    const bool unknown = known == GPS_KNOWN_NOTHING && code != GPS_INVALID_CONTEXT;
    const enum gps_audit_answer answer =
        unknown ? gps_audit_ask_event(&id, &record) : GPS_AUDIT_HAS_NOT;
    if (answer != GPS_AUDIT_HAS_NOT) { /* a driver that checks whether it is over has refused it */
        known = answer == GPS_AUDIT_HAS ? known_of_record(&record) : GPS_KNOWN_LIVE;
        text = GPS_TEXT(text_buffer);
    }
    if (answer == GPS_AUDIT_HAS && known != GPS_KNOWN_LIVE)
        report_record(GPS_ASK_EVENT_OPENED, known, &own, &record);
    else
        report_event(GPS_ASK_EVENT_OPENED, known, &own, &text, code);
}

/* --- opened, and yet not right --- */

enum { TELLING = 16, RECORDS = 128 };

/* Judges a handle without a record that begins like those of a process which publishes all of its
 * own, and still lives: records of a process that has ended are removed. */
static enum gps_known compare_with_others(const uint8_t handle[GPS_HANDLE_BYTES],
                                          struct gps_text *detail) {
    const struct gps_likeness like = gps_likeness_of(gps_membership_audit(), handle, RECORDS);
    if (like.first < TELLING || !gps_proc_has_told(gps_membership_store(), &like.begins))
        return GPS_KNOWN_LIVE;
    gps_text_add(detail,
                 "the driver opened it all the same; its first %u bytes are those of a handle of "
                 "%s (pid %u), which has given no such handle",
                 like.first, like.begins.command, like.begins.pid);
    return GPS_KNOWN_NOTHING;
}

void gps_diagnose_opened_event(const struct gps_event *event,
                               const uint8_t handle[GPS_HANDLE_BYTES]) {
    GPS_NEW_TEXT(text, 256);
    struct gps_region_record record;
    GPS_SCOPE();
    if (!gps_process_audits() || !gps_membership_audit())
        return;
    const struct gps_event opened = {.event = event->event};
    const enum gps_audit_answer answer = gps_audit_ask_event(&event->id, &record);
    const enum gps_known known = answer == GPS_AUDIT_HAS       ? known_of_record(&record)
                                 : answer == GPS_AUDIT_HAS_NOT ? compare_with_others(handle, &text)
                                                               : GPS_KNOWN_LIVE;
    if (known != GPS_KNOWN_LIVE && answer == GPS_AUDIT_HAS)
        report_record(GPS_ASK_EVENT_OPENED, known, &opened, &record);
    else if (known != GPS_KNOWN_LIVE)
        report_event(GPS_ASK_EVENT_OPENED, known, &opened, &text, GPS_OK);
}

void gps_diagnose_destroyed_event(enum gps_ask ask, uint64_t event,
                                  const struct gps_freed *destroyed) {
    GPS_SCOPE();
    struct gps_report report = gps_report_on(ask, GPS_KNOWN_FREED);
    report.pointer = event;
    gps_report_prior(&report, "created", destroyed->born);
    gps_report_prior(&report, "destroyed", destroyed->ended);
    gps_report_send(&report);
}

void gps_diagnose_ended_event(const struct gps_event *event) {
    struct gps_region_record record;
    if (!event->opened || !event->waited || event->recorded)
        return;
    GPS_SCOPE();
    if (gps_audit_ask_event(&event->id, &record) != GPS_AUDIT_HAS ||
        gps_audit_event_is_recorded(&event->id))
        return;
    report_record(GPS_ASK_NOTED_WAIT, GPS_KNOWN_NOTHING, event, &record);
}
