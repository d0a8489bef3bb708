#include "leaks.h"

#include "diagnose.h"
#include "process/process.h"
#include "process/references.h"
#include "registry/freed_history.h"
#include "registry/vmm_books.h"
#include "reporter.h"
#include "stack/trace.h"
#include "util/file_mark.h"
#include "util/text.h"

enum { GROUPS = 32 };

/* Leaks of one kind: of regions, or of VMM memory, its mappings and its descriptors, of
 * which `memory` and `left` are the first. */
struct group {
    enum gps_known known;
    uint32_t trace;
    uint64_t count, bytes, opens, closes;
    uint64_t first, last;     /* when they were opened, or exported; 0: not known */
    struct gps_export export; /* the first: of an export */
    struct gps_import import; /* or of an import */
    struct gps_event event;
    struct gps_vmm_memory memory;
    struct gps_vmm_left left;
    struct gps_alloc alloc;
    uint32_t mapped; /* the trace of a mapping of `memory` */
};

static struct {
    struct group groups[GROUPS];
    unsigned count;
} state;

/* --- the end of the process --- */

static void say_sum(struct gps_text *text, uint64_t count, uint64_t bytes, const char *what) {
    gps_text_add(text, "%lu%s%s", count, what, count == 1 ? "" : "s");
    if (!bytes)
        return;
    gps_text_str(text, ", ");
    gps_text_size(text, bytes);
    gps_text_str(text, count == 1 ? "" : " in all");
}

/* Its number may be another handle's by now. */
static void about_left(struct gps_report *report, const struct gps_vmm_left *left) {
    struct gps_freed freed;
    gps_report_about_memory(report, &left->memory);
    if (left->descriptor.way == GPS_VMM_EXPORTED_AS)
        gps_report_prior(report, "exported", left->descriptor.trace);
    if (gps_freed_find(GPS_FREED_HANDLE, 2 * left->memory.handle, &freed) &&
        freed.born == left->memory.made)
        gps_report_prior(report, "released", freed.ended);
}

static void about(struct gps_report *report, const struct group *group) {
    switch (group->known) {
    case GPS_KNOWN_EXPORTED:
        gps_report_about_export(report, &group->export);
        break;
    case GPS_KNOWN_OWN:
        report->pointer = group->alloc.pointer;
        report->context = group->alloc.context;
        report->device = group->alloc.device;
        gps_report_prior(report, "allocated", group->alloc.trace);
        break;
    case GPS_KNOWN_UNMAPPED:
    case GPS_KNOWN_NO_ACCESS:
        gps_report_about_memory(report, &group->memory);
        gps_report_prior(report, "mapped", group->mapped);
        break;
    case GPS_KNOWN_EVENT_OPEN:
        report->pointer = group->event.event;
        gps_report_prior(report, group->event.opened ? "opened" : "created", group->event.trace);
        gps_report_prior(report, "exported", group->event.exported_at);
        break;
    case GPS_KNOWN_LEFT_EXPORTED:
    case GPS_KNOWN_LEFT_IMPORTED:
        about_left(report, &group->left);
        break;
    default:
        gps_report_about_import(report, &group->import);
    }
}

static const char *unit_of(enum gps_known known) {
    return known == GPS_KNOWN_UNMAPPED                                            ? " handle"
           : known == GPS_KNOWN_NO_ACCESS                                         ? " mapping"
           : known == GPS_KNOWN_EVENT_OPEN                                        ? " event"
           : known == GPS_KNOWN_OWN                                               ? " allocation"
           : known == GPS_KNOWN_LEFT_EXPORTED || known == GPS_KNOWN_LEFT_IMPORTED ? " descriptor"
                                                                                  : " region";
}

static void report_group(const struct group *group) {
    GPS_NEW_TEXT(text, 256);
    struct gps_report report = gps_report_on(GPS_ASK_NOTED_END, group->known);
    about(&report, group);
    if (report.prior_count) /* its opening, or export */
        report.prior[report.prior_count - 1].time = group->first;
    say_sum(&text, group->count, group->bytes, unit_of(group->known));
    if (group->left.memory.serial)
        gps_text_add(&text, "; its number is %u", (unsigned)group->left.number);
    if (group->opens) {
        gps_text_add(&text, "; opened %lu%s%lu", group->opens,
                     group->opens == 1 ? " time, closed " : " times, closed ", group->closes);
    }
    report.detail = text.bytes;
    report.count = group->count;
    if (group->first && group->count > 1) {
        gps_text_str(&text, "; the last one ");
        gps_text_time(&text, group->last);
    }
    report.raised = gps_process_audits() && group->trace &&
                    group->count > GPS_LEAK_HANDFUL; /* without a trace: leaks of many places */
    if (group->trace) /* the same site, of another exporter, is not the same leak */
        report.stack_hash = gps_trace_hash(group->trace) ^ group->import.exporter.owner.nonce;
    gps_report_send(&report);
}

static void report_groups(void) {
    for (unsigned i = 0; i < state.count; i++)
        report_group(&state.groups[i]);
    state.count = 0;
}

static struct group *leak_group_of(enum gps_known known, uint32_t trace,
                                   const struct gps_owner *exporter) {
    for (unsigned i = 0; i < state.count; i++) {
        struct group *group = &state.groups[i];
        if (group->known == known && gps_trace_hash(group->trace) == gps_trace_hash(trace) &&
            (!exporter || gps_owner_equal(&group->import.exporter.owner, exporter)))
            return group;
    }
    if (state.count == GROUPS)
        report_groups(); /* a later leak of the same kind counts as a repeat */
    struct group *group = &state.groups[state.count++];
    *group = (struct group){.known = known, .trace = trace};
    return group;
}

/* Adds a leak to a group. True: it is the first, which the caller describes. */
static bool leak_group_add(struct group *group, uint64_t bytes, uint64_t time) {
    if (!group->first || time < group->first)
        group->first = time;
    if (time > group->last)
        group->last = time;
    group->bytes += bytes;
    return !group->count++;
}

void gps_leak_add_export(const struct gps_export *region) {
    struct group *group = leak_group_of(GPS_KNOWN_EXPORTED, region->exported, NULL);
    if (leak_group_add(group, region->record.requested, region->record.created))
        group->export = *region;
}

static void add_import(const struct gps_import *import) {
    if (import->via != GPS_VIA_PROGRAM)
        return; /* a rule opened it: to the program it is memory like any other */
    struct group *group = leak_group_of(
        import->opens.open == import->opens.all ? GPS_KNOWN_OPEN : GPS_KNOWN_UNBALANCED,
        import->trace, &import->exporter.owner);
    if (leak_group_add(group, import->size, import->since))
        group->import = *import;
    group->opens += import->opens.all;
    group->closes += import->opens.all - import->opens.open;
}

static void add_unmapped(const struct gps_vmm_memory *memory) {
    struct group *group = leak_group_of(GPS_KNOWN_UNMAPPED, memory->made, NULL);
    if (leak_group_add(group, memory->size, 0))
        group->memory = *memory;
}

static void add_closed(const struct gps_vmm_closed *closed) {
    struct group *group = leak_group_of(GPS_KNOWN_NO_ACCESS, closed->mapping.mapped, NULL);
    if (leak_group_add(group, closed->mapping.size, 0)) {
        group->memory = closed->memory;
        group->mapped = closed->mapping.mapped;
    }
}

/* A descriptor is recognised by its file's mark: another file may have its number by now. */
static void add_left(const struct gps_vmm_left *left) {
    const bool exported = left->descriptor.way == GPS_VMM_EXPORTED_AS;
    if (!gps_file_has_mark(left->number, left->descriptor.mark))
        return;
    struct group *group = leak_group_of(
        exported ? GPS_KNOWN_LEFT_EXPORTED : GPS_KNOWN_LEFT_IMPORTED, left->descriptor.trace, NULL);
    if (leak_group_add(group, left->memory.size, 0))
        group->left = *left;
}

static void add_event(const struct gps_event *event) {
    gps_diagnose_ended_event(event);
    struct group *group = leak_group_of(GPS_KNOWN_EVENT_OPEN,
                                        event->opened ? event->trace : event->exported_at, NULL);
    if (leak_group_add(group, 0, event->since))
        group->event = *event;
}

static void add_alloc(const struct gps_alloc *alloc) {
    struct group *group = leak_group_of(GPS_KNOWN_OWN, alloc->trace, NULL);
    if (leak_group_add(group, alloc->size, 0))
        group->alloc = *alloc;
}

static void add_never_freed(void) {
    enum { BATCH = 32 };
    struct gps_alloc left[BATCH];
    if (!gps_process_audits() || gps_process_config()->options.leak_check == GPS_LEAK_CHECK_OFF)
        return;
    for (unsigned count; (count = gps_registry_take_plain(left, BATCH));)
        for (unsigned i = 0; i < count; i++)
            add_alloc(&left[i]);
}

/* Reports memory that the program was refused, and asked for in no other way. */
static void report_refusal(void) {
    struct gps_vmm_refusal refusal;
    GPS_NEW_TEXT(text, 64);
    if (!gps_vmm_take_refusal(&refusal))
        return;
    struct gps_report report = gps_report_on(GPS_ASK_VMM_MAPPED, GPS_KNOWN_FABRIC);
    gps_text_add(&text, "the driver's code is %u", (unsigned)refusal.code);
    report.size = refusal.size;
    report.device = refusal.device;
    report.detail = text.bytes;
    gps_report_prior(&report, "refused", refusal.trace);
    gps_report_send(&report);
}

/* Descriptors come first: unmapped memory taken from the books leaves its descriptors behind. */
void gps_leak_report_end(void) {
    enum { BATCH = 8 };
    struct gps_vmm_left left[BATCH];
    struct gps_vmm_memory unmapped[BATCH];
    struct gps_vmm_closed closed[BATCH];
    struct gps_import import;
    struct gps_event event;
    report_refusal();
    for (unsigned count; (count = gps_vmm_take_left(left, BATCH));)
        for (unsigned i = 0; i < count; i++)
            add_left(&left[i]);
    for (unsigned count; (count = gps_vmm_take_unmapped(unmapped, BATCH));)
        for (unsigned i = 0; i < count; i++)
            add_unmapped(&unmapped[i]);
    for (unsigned count; (count = gps_vmm_take_closed(closed, BATCH));)
        for (unsigned i = 0; i < count; i++)
            add_closed(&closed[i]);
    while (gps_registry_take_import(&import))
        add_import(&import);
    while (gps_registry_take_shared_event(&event))
        add_event(&event);
    add_never_freed();
    report_groups();
}

/* --- the end of a context --- */

void gps_leak_reset_import(struct gps_reset *reset, const struct gps_import *import) {
    if (!reset->opens++)
        reset->import = *import;
    reset->open_bytes += import->size;
}

void gps_leak_reset_export(struct gps_reset *reset, const struct gps_export *region) {
    const enum gps_known known = gps_policy_known(region);
    if (known == GPS_KNOWN_HELD) {
        if (!reset->held++)
            reset->held_export = *region;
        reset->held_bytes += region->record.requested;
    } else if (known != GPS_KNOWN_NOTHING) {
        if (!reset->exports++)
            reset->export = *region;
        reset->export_bytes += region->record.requested;
    }
}

/* A context with both gives one report, because one call ended both. */
static void report_shared(const struct gps_reset *reset) {
    GPS_NEW_TEXT(text, 256);
    struct gps_party users[GPS_USERS_REPORTED];
    struct gps_report report =
        gps_report_on(GPS_ASK_NOTED_RESET, reset->opens ? GPS_KNOWN_OPEN : GPS_KNOWN_HELD);
    if (reset->opens) {
        gps_report_about_import(&report, &reset->import);
        say_sum(&text, reset->opens, reset->open_bytes, " region");
        gps_text_str(&text, " of other processes open in it");
    } else {
        gps_report_about_export(&report, &reset->held_export);
        gps_report_users(
            &report, users,
            gps_references_users(&reset->held_export.record.id, users, GPS_USERS_REPORTED, NULL));
    }
    if (reset->held) {
        gps_text_str(&text, reset->opens ? "; " : "");
        say_sum(&text, reset->held, reset->held_bytes, " region");
        gps_text_str(&text, " of its own that other processes have open");
    }
    report.context = reset->context;
    report.detail = text.bytes;
    gps_report_send(&report);
}

void gps_leak_report_reset(const struct gps_reset *reset) {
    GPS_NEW_TEXT(text, 128);
    if (reset->opens || reset->held)
        report_shared(reset);
    if (!reset->exports)
        return;
    struct gps_report report = gps_report_on(GPS_ASK_NOTED_RESET, GPS_KNOWN_EXPORTED);
    gps_report_about_export(&report, &reset->export);
    say_sum(&text, reset->exports, reset->export_bytes, " region");
    gps_text_str(&text, "; the end of its context freed it");
    report.count = reset->exports;
    report.detail = text.bytes;
    gps_report_send(&report);
}

void gps_leak_reset(void) {
    state.count = 0;
}
