#include "audit_record.h"

#include <errno.h>
#include <string.h>

#include "directory/region.h"
#include "process/membership.h"
#include "process/process.h"
#include "process/references.h"
#include "stack/trace.h"
#include "util/clock.h"
#include "util/digits.h"
#include "util/forgotten.h"

/* --- out --- */

/* The place of a module in the list, to which it is added if it is new and there is room. */
static uint8_t traces_module_place(struct gps_region_traces *traces,
                                   const struct gps_trace_module *module) {
    if (!*module->path)
        return GPS_TRACE_NO_MODULE;
    for (unsigned i = 0; i < traces->module_count; i++)
        if (memcmp(&traces->modules[i], module, sizeof(*module)) == 0)
            return (uint8_t)i;
    if (traces->module_count == GPS_TRACE_MODULES)
        return GPS_TRACE_NO_MODULE;
    traces->modules[traces->module_count] = *module;
    return (uint8_t)traces->module_count++;
}

static struct gps_trace_module frame_module(const struct gps_frame *frame) {
    struct gps_trace_module module = {.build_id_bytes = 0};
    const size_t length = strlen(frame->module), room = sizeof(module.path) - 1;
    const char *hex = frame->build_id;
    memcpy(module.path, frame->module + (length > room ? length - room : 0),
           length > room ? room : length);
    while (module.build_id_bytes < GPS_BUILD_ID_BYTES &&
           gps_hex_parse(&hex, &module.build_id[module.build_id_bytes], 1))
        module.build_id_bytes++;
    return module;
}

static void traces_add(struct gps_region_traces *traces, enum gps_history_event event,
                       uint32_t trace) {
    struct gps_frame frames[GPS_TRACE_FRAMES];
    const unsigned count = gps_trace_frames(gps_trace_native(trace), frames, GPS_TRACE_FRAMES);
    for (unsigned i = 0; i < count; i++) {
        const struct gps_trace_module module = frame_module(&frames[i]);
        traces->module[event][i] = traces_module_place(traces, &module);
        traces->offset[event][i] =
            traces->module[event][i] == GPS_TRACE_NO_MODULE ? frames[i].address : frames[i].offset;
    }
    traces->count[event] = count;
}

/* Publishes the stacks, by enum gps_history_event, of any record that this process owns. */
static void publish_history(const struct gps_store *store, const struct gps_region_record *record,
                            const uint32_t traces[GPS_HISTORY_EVENTS]) {
    struct gps_region_traces all = {.module_count = 0};
    for (enum gps_history_event event = 0; event < GPS_HISTORY_EVENTS; event++)
        traces_add(&all, event, traces[event]);
    (void)gps_region_set_traces(store, record, &all); /* without them another report says less */
}

void gps_audit_region_publish(const struct gps_export *region, uint32_t freed) {
    const uint32_t traces[] = {region->allocated, region->exported, freed};
    if (region->published && (region->allocated || region->exported || freed))
        publish_history(gps_membership_store(), &region->record, traces);
}

/* --- in --- */

static void traces_frame(const struct gps_region_traces *traces, enum gps_history_event event,
                         unsigned i, struct gps_frame *frame) {
    const uint8_t place = traces->module[event][i];
    *frame =
        (struct gps_frame){.address = traces->offset[event][i], .offset = traces->offset[event][i]};
    if (place == GPS_TRACE_NO_MODULE)
        return;
    const struct gps_trace_module *module = &traces->modules[place];
    memcpy(frame->module, module->path, sizeof(module->path));
    gps_hex_format(module->build_id, module->build_id_bytes, frame->build_id);
}

unsigned gps_audit_region_frames(const struct gps_region_traces *traces,
                                 enum gps_history_event event, struct gps_frame *frames,
                                 unsigned max) {
    const unsigned count = traces->count[event] < max ? traces->count[event] : max;
    for (unsigned i = 0; i < count; i++)
        traces_frame(traces, event, i, &frames[i]);
    return count;
}

static int audit_record_publish(enum gps_backing backing, const uint8_t handle[GPS_HANDLE_BYTES],
                                const uint32_t traces[GPS_HISTORY_EVENTS]) {
    const uint64_t now = gps_clock_now();
    int status = gps_membership_join();
    if (status < 0)
        return status;
    struct gps_region_record record = {.id = gps_id_of_handle(handle),
                                       .generation = 1,
                                       .backing = (uint32_t)backing,
                                       .created = now,
                                       .owner = *gps_process_self(),
                                       .status = {.state = GPS_STATE_READY, .changed = now}};
    memcpy(record.handle, handle, GPS_HANDLE_BYTES);
    gps_record_seal(&record);
    status = gps_region_publish(gps_membership_audit(), &record);
    if (status == 0)
        publish_history(gps_membership_audit(), &record, traces);
    return status;
}

/* 0, or -errno. -ENOENT: there is no record. -ENODEV: there is no audit. */
static int audit_record_find(const struct gps_id *id, struct gps_region_record *record) {
    const struct gps_store *store = gps_membership_audit();
    return store ? gps_region_read(store, id, record, NULL) : -ENODEV;
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
        (void)audit_record_publish(GPS_BACKING_PLACE, handle,
                                   traces); /* a report says less without it */
    return place;
}

bool gps_audit_find_place(const struct gps_owner *owner, uint64_t place,
                          struct gps_region_record *record) {
    uint8_t handle[GPS_HANDLE_BYTES];
    handle_of_place(owner, place, handle);
    const struct gps_id id = gps_id_of_handle(handle);
    return audit_record_find(&id, record) == 0;
}

/* --- events --- */

static _Atomic bool owed; /* the directory is still to say that a record is missing */
GPS_FORGOTTEN(owed);

void gps_audit_event_exported(const struct gps_event *event,
                              const uint8_t handle[GPS_HANDLE_BYTES]) {
    const uint32_t traces[] = {event->trace, event->exported_at, GPS_NO_TRACE};
    if (!gps_process_audits())
        return;
    if (gps_membership_join() == 0)
        gps_region_remove_beside(gps_membership_audit(), &event->id); /* an earlier event's */
    const bool told = !owed && audit_record_publish(GPS_BACKING_EVENT, handle, traces) == 0;
    owed = !told && gps_references_set_untold() < 0;
    if (told && event->recorded)
        gps_audit_event_recorded(&event->id);
}

enum gps_audit_answer gps_audit_ask_event(const struct gps_id *id,
                                          struct gps_region_record *record) {
    const int status = gps_process_audits() ? audit_record_find(id, record) : -ENODEV;
    if (status == 0 && record->backing == GPS_BACKING_EVENT)
        return GPS_AUDIT_HAS;
    return status == -ENOENT || status == -ENODEV ? GPS_AUDIT_HAS_NOT : GPS_AUDIT_UNREADABLE;
}

void gps_audit_event_destroyed(const struct gps_event *event, uint32_t destroyed) {
    const uint32_t traces[] = {event->trace, event->exported_at, destroyed};
    struct gps_region_record record;
    if (!event->exported || gps_audit_ask_event(&event->id, &record) != GPS_AUDIT_HAS ||
        !gps_process_is_self(&record.owner))
        return;
    publish_history(gps_membership_audit(), &record, traces);
    (void)gps_region_set_status(gps_membership_audit(), &record, GPS_STATE_FREED, 0);
}

void gps_audit_event_recorded(const struct gps_id *id) {
    if (gps_process_audits() && gps_membership_audit())
        (void)gps_region_take(gps_membership_audit(), id);
}

bool gps_audit_event_is_recorded(const struct gps_id *id) {
    return !gps_membership_audit() || gps_region_taken(gps_membership_audit(), id);
}
