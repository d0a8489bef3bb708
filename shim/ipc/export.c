#include "export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "directory/name.h"
#include "directory/processes.h"
#include "directory/region.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "findings/audit_record.h"
#include "findings/reporter.h"
#include "process/membership.h"
#include "process/process.h"
#include "process/references.h"
#include "region_events.h"
#include "registry/freed_history.h"
#include "registry/record_reservation.h"
#include "stack/trace.h"
#include "util/clock.h"
#include "util/forgotten.h"
#include "util/text.h"
#include "vmm/mapping.h"
#include "vmm/vmm_region.h"

enum { BLOCK = 2 << 20 /* the driver's */, TOMBSTONES = 4096 /* of all processes */ };

static struct {
    _Atomic uint64_t generation;
    _Atomic uint64_t again; /* the directory was unusable: nothing is published before this */
    _Atomic bool missed;    /* the program got a handle whose region was not published then */
    _Atomic int recount;    /* count the processes again after so many tombstones */
    _Atomic unsigned part;  /* of the tombstones, this process's */
} state;
GPS_FORGOTTEN(state);

/* --- publishing --- */

static struct gps_export *export_make(const struct gps_alloc *alloc,
                                      const uint8_t handle[GPS_HANDLE_BYTES]) {
    struct gps_export *region = calloc(1, sizeof(*region));
    if (!region)
        return NULL;
    region->pointer = alloc->pointer;
    region->context = alloc->context;
    region->allocated = alloc->trace;
    region->exported = gps_trace_kept();
    struct gps_region_record *record = &region->record;
    record->id = gps_id_of_handle(handle);
    record->generation = atomic_fetch_add(&state.generation, 1) + 1;
    record->backing = GPS_BACKING_IPC;
    record->requested = record->extent = alloc->size;
    record->created = record->status.changed = gps_clock_now();
    record->status.state = GPS_STATE_READY;
    record->locked = gps_references_crowded();
    memcpy(record->handle, handle, GPS_HANDLE_BYTES);
    record->owner = *gps_process_self();
    if (gps_ops->home(alloc->pointer, NULL, &region->device) == GPS_OK)
        gps_ops->uuid(region->device, record->device);
    return region;
}

static bool is_usable(void) {
    const uint64_t again = atomic_load(&state.again);
    return !again || gps_clock_monotonic() >= again;
}

/* With a reservation. */
static bool export_publish(struct gps_export *region) {
    if (!is_usable())
        return false;
    int status = gps_membership_join();
    const bool joined = status == 0;
    if (joined) {
        gps_record_seal(&region->record);
        status = gps_region_publish(gps_membership_store(), &region->record);
    }
    if (!joined || status == -ENOSPC)
        atomic_store(&state.again, gps_clock_monotonic() + GPS_SECOND);
    if (status < 0)
        gps_report_store(status, "a region could not be published");
    region->published = status == 0;
    region->lockable = region->published && !atomic_load(&state.missed) && region->record.locked;
    if (region->published && !region->rule)
        gps_region_event_exported(region);
    gps_audit_region_publish(region, GPS_NO_TRACE);
    return region->published;
}

/* Asks the driver for an address inside an allocation, or for memory of unhooked calls. */
static bool find_base(uint64_t pointer, struct gps_alloc *alloc) {
    uint64_t base, size;
    if (gps_ops->range(pointer, &base, &size) != GPS_OK)
        return false;
    if (gps_registry_find(base, alloc))
        return true;
    *alloc = (struct gps_alloc){
        .pointer = base, .size = size, .era = gps_registry_era(), .trace = GPS_NO_TRACE};
    int device;
    if (gps_ops->home(base, &alloc->context, &device) != GPS_OK)
        return false;
    alloc->device = (int16_t)device;
    gps_registry_add(alloc);
    return true;
}

/* The reservation lets one thread through: of two that export a pointer, one finds it done. */
static void publish_first(const struct gps_alloc *seen, const uint8_t handle[GPS_HANDLE_BYTES],
                          struct gps_export *region) {
    const struct gps_id id = region ? region->record.id : gps_id_of_handle(handle);
    struct gps_alloc now;
    struct gps_record_reservation mine;
    const bool stands = gps_record_reserve_id(&mine, &id);
    const bool there = gps_registry_find(seen->pointer, &now);
    const bool done = there && now.kind != GPS_ALLOC_PLAIN;
    const bool attached = region && there && !done && export_publish(region) &&
                          gps_registry_attach(seen->pointer, region);
    if (!attached && region && region->published) { /* freed meanwhile */
        gps_region_remove(gps_membership_store(), &region->record.id);
        gps_region_event_freed(region);
    }
    if (stands) /* the handle lives again, and is not stale */
        gps_region_remove_freed(gps_membership_store(), &id);
    gps_record_release(&mine);
    if (!attached && !done)
        atomic_store(&state.missed, true);
    if (!attached)
        free(region);
}

/* --- findings about an export --- */

static void export_note(const struct gps_alloc *alloc, uint64_t pointer, enum gps_known known,
                        const char *detail) {
    struct gps_report report = gps_report_on(GPS_ASK_NOTED_EXPORT, known);
    report.pointer = pointer;
    report.size = alloc->size;
    report.context = alloc->context;
    report.device = alloc->device;
    report.detail = detail;
    gps_report_prior(&report, "allocated", alloc->trace);
    gps_report_send(&report);
}

static void note_interior(const struct gps_alloc *alloc, uint64_t pointer) {
    GPS_NEW_TEXT(text, 128);
    gps_text_add(&text, "the pointer lies %lu bytes behind the beginning of the allocation, 0x%lx",
                 pointer - alloc->pointer, alloc->pointer);
    export_note(alloc, pointer, GPS_KNOWN_INTERIOR, text.bytes);
}

static void note_neighbours(const struct gps_alloc *alloc) {
    GPS_NEW_TEXT(text, 160);
    struct gps_alloc other;
    const unsigned count =
        alloc->size % BLOCK && gps_process_config()->options.log_level == GPS_LEVEL_INFO
            ? gps_registry_neighbours(alloc->pointer, &other)
            : 0;
    if (!count)
        return;
    gps_text_add(&text, "%u%s", count,
                 count == 1 ? " other allocation lies in it: " : " others lie in it; one: ");
    gps_text_size(&text, other.size);
    gps_text_add(&text, " at 0x%lx", other.pointer);
    export_note(alloc, alloc->pointer, GPS_KNOWN_BLOCK, text.bytes);
}

static void export_first(uint64_t pointer, const uint8_t handle[GPS_HANDLE_BYTES]) {
    struct gps_alloc alloc;
    bool found = gps_registry_find(pointer, &alloc);
    if (found && alloc.kind != GPS_ALLOC_PLAIN)
        return;
    GPS_DRIVER_SCOPE();
    found = found || find_base(pointer, &alloc);
    if (!found)
        atomic_store(&state.missed, true);
    if (found && alloc.kind == GPS_ALLOC_PLAIN) {
        note_neighbours(&alloc);
        publish_first(&alloc, handle, is_usable() ? export_make(&alloc, handle) : NULL);
    }
    if (found && alloc.pointer != pointer)
        note_interior(&alloc, pointer);
}

bool gps_export_missed(void) {
    return atomic_load(&state.missed);
}

void gps_export_first(uint64_t pointer, const uint8_t handle[GPS_HANDLE_BYTES]) {
    if (!gps_registry_is_exported(pointer))
        export_first(pointer, handle);
}

/* Records the allocation before the region is published, so that the program's free finds it. */
static bool export_is_recorded(const struct gps_alloc *alloc) {
    struct gps_alloc found;
    gps_registry_add(alloc);
    return gps_registry_find(alloc->pointer, &found);
}

static void export_forget_alloc(const struct gps_alloc *alloc) {
    struct gps_alloc taken;
    gps_registry_take(alloc->pointer, &taken);
}

/* Makes the file of the frames before the region is published. */
static void make_frames(struct gps_region_record *record, const struct gps_rule *rule,
                        struct gps_frame_file *file) {
    struct gps_frames_head head = {.region = record->id,
                                   .mode = (uint32_t)rule->frames,
                                   .slots = rule->frame_slots,
                                   .timeout = rule->frames_timeout,
                                   .any = rule->touch == GPS_TOUCH_ANY};
    int status = -EAGAIN;
    for (unsigned i = 0; status == -EAGAIN && i < 4; i++)
        status = gps_frame_file_make(gps_membership_store(), &head, file);
    gps_report_reference(status);
    if (status < 0)
        return;
    record->frames = head.mode;
    record->frame_slots = head.slots;
}

bool gps_export_by_rule(const struct gps_alloc *alloc, uint64_t allocated,
                        const uint8_t handle[GPS_HANDLE_BYTES], const struct gps_rule *rule,
                        const char *name, struct gps_frame_file *frames) {
    struct gps_export *region = export_make(alloc, handle);
    if (!region || !export_is_recorded(alloc)) {
        free(region);
        return false;
    }
    region->rule = rule;
    if (frames)
        make_frames(&region->record, rule, frames);
    region->record.extent = allocated;
    if (rule->ready == GPS_READY_FREE)
        region->record.status.state = GPS_STATE_WRITING;
    memcpy(region->record.name, name, strlen(name) + 1);
    struct gps_record_reservation mine;
    const bool stands = gps_record_reserve_id(&mine, &region->record.id);
    const bool published = export_publish(region);
    if (stands)
        gps_region_remove_freed(gps_membership_store(), &region->record.id);
    gps_record_release(&mine);
    if (!published ||
        gps_name_point(gps_membership_store(), name, gps_process_self(), &region->record.id) < 0) {
        if (region->published)
            gps_region_remove(gps_membership_store(), &region->record.id);
        export_forget_alloc(alloc);
        free(region);
        return false;
    }
    gps_region_event_created(region);
    gps_registry_attach(alloc->pointer, region);
    return true;
}

static void describe_vmm(struct gps_export *region, uint64_t extent, const struct gps_rule *rule,
                         const char *name) {
    struct gps_region_record *record = &region->record;
    region->rule = rule;
    region->vmm = true;
    region->device = -1;
    if (gps_ops->device(&region->device) == GPS_OK)
        gps_ops->uuid(region->device, record->device);
    record->backing = GPS_BACKING_VMM;
    record->extent = extent;
    record->creator = *gps_process_self();
    record->keep = (uint32_t)rule->keep;
    record->keep_for = rule->keep_for;
    record->flags = rule->access == GPS_ACCESS_RO ? GPS_REGION_READ_ONLY : 0u;
    memcpy(record->name, name, strlen(name) + 1);
}

const char *gps_export_to_keeper(const struct gps_alloc *alloc, uint64_t extent,
                                 const struct gps_rule *rule, const char *name,
                                 struct gps_frame_file *frames) {
    uint8_t token[GPS_HANDLE_BYTES];
    gps_vmm_region_make_token(token);
    struct gps_export *region = export_make(alloc, token);
    if (!region || !export_is_recorded(alloc)) {
        free(region);
        return "there is no memory for its record";
    }
    describe_vmm(region, extent, rule, name);
    if (frames)
        make_frames(&region->record, rule, frames);
    const int status = gps_vmm_region_publish(region);
    if (status < 0) {
        export_forget_alloc(alloc);
        free(region);
        return status == -ENOTSUP        ? "the driver gives no descriptor of it"
               : status == -ENOSPC       ? "the published directory is full"
               : status == -ETOOMANYREFS ? gps_not_merging_why(GPS_NOT_MERGING_CROWDED)
               : status == -EMFILE || status == -ENFILE
                   ? gps_not_merging_why(GPS_NOT_MERGING_DESCRIPTORS)
               : status == -ENOBUFS ? "the keeper has as many regions as its limit of descriptors "
                                      "allows; raise the hard limit where it starts (ulimit -Hn)"
                                    : "the keeper could not be started, or does not answer";
    }
    gps_region_event_created(region);
    gps_registry_attach(alloc->pointer, region);
    return NULL;
}

/* --- state and end --- */

void gps_export_become(struct gps_export *region, enum gps_export_state to) {
#define FROM(state, next) GPS_STATE_ROW(GPS_EXPORT_##state, next),
#define TO(state)         GPS_TO(GPS_EXPORT_##state)
    static const struct gps_state_row rows[] = {GPS_EXPORT_STATES(FROM, TO)};
    gps_transition_check("exported region", rows, region->state, to);
    region->state = to;
}

int gps_export_set_state(struct gps_export *region, enum gps_state to, uint64_t until) {
    if (region->published)
        return gps_region_set_status(gps_membership_store(), &region->record, to, until);
    region->record.status.state = (uint32_t)to;
    return 0;
}

bool gps_export_close(struct gps_export *region) {
    return region->record.status.state == GPS_STATE_CLOSING ||
           gps_export_set_state(region, GPS_STATE_CLOSING, 0) == 0;
}

bool gps_export_close_unheld(struct gps_export *region) {
    if (*region->record.name)
        return gps_export_close(region);
    return gps_record_over(&region->record) ||
           gps_export_set_state(region, GPS_STATE_FREED, 0) == 0;
}

bool gps_export_publish_result(struct gps_export *region) {
    if (!region->until) {
        region->until = gps_clock_now() + region->rule->handover;
        gps_region_event_exported(region);
    }
    return region->record.status.state == GPS_STATE_FINAL ||
           gps_export_set_state(region, GPS_STATE_FINAL, region->until) == 0;
}

void gps_export_unname(struct gps_export *region) {
    if (*region->record.name && region->published)
        gps_name_release(gps_membership_store(), region->record.name, gps_process_self(),
                         &region->record.id);
}

void gps_export_rename(struct gps_export *region) {
    if (*region->record.name && region->published &&
        gps_name_claim(gps_membership_store(), region->record.name, gps_process_self(), NULL) == 0)
        gps_name_point(gps_membership_store(), region->record.name, gps_process_self(),
                       &region->record.id);
}

/* How many tombstones this process may keep, so that all together keep TOMBSTONES. It counts the
 * processes again after half of its part, or 32. */
static unsigned part_of_tombstones(void) {
    if (atomic_fetch_sub(&state.recount, 1) <= 0) {
        const unsigned processes = gps_proc_count(gps_membership_store());
        const unsigned part = TOMBSTONES / (processes ? processes : 1);
        state.part = part > GPS_TOMBSTONES ? GPS_TOMBSTONES : part ? part : 1;
        state.recount = (int)(part > 64 ? 32 : part / 2);
    }
    return state.part;
}

/* A process that looks meanwhile finds a record in one of the two places, and in either that the
 * region is freed. The memory is free, so another thread may have exported the handle again. */
void gps_export_leave_tombstone(const struct gps_region_record *record) {
    const unsigned limit = part_of_tombstones();
    struct gps_record_reservation mine, oldest;
    gps_record_reserve_id(&mine, &record->id);
    const bool buried = gps_region_bury(gps_membership_store(), record) == 0;
    for (const struct gps_id *left = buried ? &record->id : NULL;
         gps_record_leave_tombstone(left, limit, &oldest); left = NULL) {
        gps_region_remove_freed(gps_membership_store(), &oldest.id);
        gps_record_release(&oldest);
    }
    gps_record_release(&mine);
}

void gps_export_end(struct gps_export *region) {
    gps_region_event_freed(region);
    gps_export_become(region, GPS_EXPORT_GONE);
    if (region->vmm) {
        if (region->pointer) {
            gps_scope_synchronize();
            gps_mapping_close(region->pointer);
        }
        gps_vmm_region_end(region);
        free(region);
        return;
    }
    gps_export_unname(region);
    if (region->record.status.state != GPS_STATE_FREED)
        gps_export_set_state(region, GPS_STATE_FREED, 0);
    if (region->published && (gps_export_becomes_result(region) || region->record.frames))
        gps_region_remove_beside(gps_membership_store(), &region->record.id);
    if (region->published)
        gps_export_leave_tombstone(&region->record);
    free(region);
}

void gps_export_leave(struct gps_export *region, bool keep_record) {
    gps_export_become(region, GPS_EXPORT_GONE);
    gps_export_unname(region);
    if (!keep_record && region->published)
        gps_region_remove(gps_membership_store(), &region->record.id);
    /* not freed: the process ends, perhaps in a signal handler that interrupted malloc */
}

/* Other threads may still free, so each tombstone is reserved first. */
void gps_export_remove_tombstones(void) {
    struct gps_record_reservation mine;
    for (unsigned place = 0; gps_record_reserve_tombstone(&place, &mine);) {
        gps_region_remove_freed(gps_membership_store(), &mine.id);
        gps_record_release(&mine);
    }
}

int gps_export_free_vmm(const struct gps_alloc *alloc) {
    struct gps_scope scope;
    int code = gps_scope_enter(&scope, alloc->context);
    if (code == GPS_OK) {
        gps_freed_note_allocation(alloc, gps_trace_kept());
        code = gps_scope_synchronize();
    }
    if (code == GPS_OK)
        code = gps_mapping_close(alloc->pointer);
    if (code == GPS_OK) {
        alloc->region->pointer = 0; /* the address may be another allocation's already */
        gps_export_end(alloc->region);
    } else {
        gps_registry_add(alloc);
    }
    gps_scope_end(&scope);
    return code;
}
