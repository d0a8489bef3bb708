/* audit_record.c - see audit_record.h. */
#include "audit_record.h"

#include <errno.h>
#include <string.h>

#include "directory/region.h"
#include "process/membership.h"
#include "process/process.h"
#include "region_history.h"
#include "stack/trace.h"
#include "util/clock.h"
#include "util/forgotten.h"

static struct { _Atomic bool stopped; /* a record of an event could not be written */ } state;
GPS_FORGOTTEN(state);

static struct gps_region_record make(enum gps_backing backing,
                                     const uint8_t handle[GPS_HANDLE_BYTES]) {
    struct gps_region_record record = {.id = gps_id_of_handle(handle),
                                       .generation = 1,
                                       .backing = (uint32_t)backing,
                                       .created = gps_clock_now(),
                                       .owner = *gps_process_self()};
    memcpy(record.handle, handle, GPS_HANDLE_BYTES);
    record.status = (struct gps_region_status){.state = GPS_STATE_READY, .changed = record.created};
    gps_record_seal(&record);
    return record;
}

static int publish(enum gps_backing backing, const uint8_t handle[GPS_HANDLE_BYTES],
                   const uint32_t traces[GPS_HISTORY_EVENTS]) {
    int status = gps_membership_join();
    if (status < 0)
        return status;
    const struct gps_region_record record = make(backing, handle);
    status = gps_region_publish(gps_membership_audit(), &record);
    if (status == 0)
        gps_history_publish(gps_membership_audit(), &record, traces);
    return status;
}

static bool find(const struct gps_id *id, struct gps_region_record *record) {
    const struct gps_store *store = gps_membership_audit();
    return store && gps_region_read(store, id, record, NULL) == 0;
}

/* --- places --- */

static void handle_of_place(const struct gps_owner *owner, uint64_t place,
                            uint8_t handle[GPS_HANDLE_BYTES]) {
    memset(handle, 0, GPS_HANDLE_BYTES);
    memcpy(handle, &owner->nonce, sizeof(owner->nonce));
    memcpy(handle + sizeof(owner->nonce), &place, sizeof(place));
}

uint64_t gps_audit_place(uint32_t trace) {
    if (!trace || !gps_process_audits())
        return 0;
    const uint32_t native = gps_trace_native(trace),
                   traces[] = {GPS_NO_TRACE, native, GPS_NO_TRACE};
    uint8_t handle[GPS_HANDLE_BYTES];
    const uint64_t place = gps_trace_hash(native);
    handle_of_place(gps_process_self(), place, handle);
    /* A child that was forked has the marks of its parent, and another nonce. */
    if (gps_trace_mark(native, (uint32_t)gps_process_self()->nonce | 1))
        (void)publish(GPS_BACKING_PLACE, handle, traces); /* a report says less without it */
    return place;
}

bool gps_audit_find_place(const struct gps_owner *owner, uint64_t place,
                          struct gps_region_record *record) {
    uint8_t handle[GPS_HANDLE_BYTES];
    handle_of_place(owner, place, handle);
    const struct gps_id id = gps_id_of_handle(handle);
    return find(&id, record);
}

/* --- events --- */

static bool withdraw(void *arg, const struct gps_region_record *record, int status,
                     const char *why) {
    (void)arg;
    (void)why;
    if (status == 0 && record->backing == GPS_BACKING_EVENT && gps_process_is_self(&record->owner))
        (void)gps_region_remove(gps_membership_audit(), &record->id);
    return true;
}

void gps_audit_event_exported(const struct gps_event *event,
                              const uint8_t handle[GPS_HANDLE_BYTES]) {
    const uint32_t traces[] = {event->trace, event->exported_at, GPS_NO_TRACE};
    if (!gps_process_audits() || state.stopped || gps_membership_join() < 0)
        return;
    gps_region_remove_taken(gps_membership_audit(), &event->id); /* of an earlier one */
    if (publish(GPS_BACKING_EVENT, handle, traces) == 0) {
        if (event->recorded)
            gps_audit_event_recorded(&event->id);
        return;
    }
    state.stopped = true;
    (void)gps_region_each(gps_membership_audit(), withdraw, NULL);
}

bool gps_audit_find_event(const struct gps_id *id, struct gps_region_record *record) {
    return gps_process_audits() && find(id, record) && record->backing == GPS_BACKING_EVENT;
}

void gps_audit_event_destroyed(const struct gps_event *event, uint32_t destroyed) {
    const uint32_t traces[] = {event->trace, event->exported_at, destroyed};
    struct gps_region_record record;
    if (!event->exported || !gps_audit_find_event(&event->id, &record) ||
        !gps_process_is_self(&record.owner))
        return;
    gps_history_publish(gps_membership_audit(), &record, traces);
    (void)gps_region_set_status(gps_membership_audit(), &record, GPS_STATE_FREED, 0);
}

void gps_audit_event_recorded(const struct gps_id *id) {
    if (gps_process_audits() && gps_membership_audit())
        (void)gps_region_take(gps_membership_audit(), id);
}

bool gps_audit_event_is_recorded(const struct gps_id *id) {
    return !gps_membership_audit() || gps_region_taken(gps_membership_audit(), id);
}
