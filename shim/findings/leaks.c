/* leaks.c - see leaks.h. */
#include "leaks.h"

#include "process/references.h"
#include "reporter.h"
#include "stack/trace.h"
#include "util/text.h"

enum { GROUPS = 32 };

/* Leaks of one kind. */
struct group {
    enum gps_known known;
    uint32_t trace;
    uint64_t count, bytes, opens, closes;
    struct gps_export export; /* the first: of an export */
    struct gps_import import; /* or of an import */
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

static void report_group(const struct group *group) {
    char detail[256];
    struct gps_text text = GPS_TEXT(detail);
    struct gps_report report = gps_report_on(GPS_ASK_NOTED_END, group->known);
    if (group->known == GPS_KNOWN_EXPORTED)
        gps_report_about_export(&report, &group->export);
    else
        gps_report_about_import(&report, &group->import);
    say_sum(&text, group->count, group->bytes, " region");
    if (group->known != GPS_KNOWN_EXPORTED) {
        gps_text_add(&text, "; opened %lu%s%lu", group->opens,
                     group->opens == 1 ? " time, closed " : " times, closed ", group->closes);
    }
    report.detail = detail;
    report.count = group->count;
    if (group->trace) /* the same site, of another exporter, is not the same leak */
        report.stack_hash = gps_trace_hash(group->trace) ^ group->import.exporter.owner.nonce;
    gps_report_send(&report);
}

static void report_groups(void) {
    for (unsigned i = 0; i < state.count; i++)
        report_group(&state.groups[i]);
    state.count = 0;
}

static struct group *group_of(enum gps_known known, uint32_t trace,
                              const struct gps_owner *exporter) {
    for (unsigned i = 0; i < state.count; i++) {
        struct group *group = &state.groups[i];
        if (group->known == known && gps_trace_hash(group->trace) == gps_trace_hash(trace) &&
            (!exporter || gps_owner_equal(&group->import.exporter.owner, exporter)))
            return group;
    }
    if (state.count == GROUPS)
        report_groups(); /* what comes again later is counted as a repeat */
    struct group *group = &state.groups[state.count++];
    *group = (struct group){.known = known, .trace = trace};
    return group;
}

void gps_leak_add_export(const struct gps_export *region) {
    struct group *group = group_of(GPS_KNOWN_EXPORTED, region->exported, NULL);
    if (!group->count++)
        group->export = *region;
    group->bytes += region->record.requested;
}

static void add_import(const struct gps_import *import) {
    if (import->via != GPS_VIA_PROGRAM)
        return; /* a rule opened it: to the program it is memory like any other */
    struct group *group =
        group_of(import->count == import->opens ? GPS_KNOWN_OPEN : GPS_KNOWN_UNBALANCED,
                 import->trace, &import->exporter.owner);
    if (!group->count++)
        group->import = *import;
    group->bytes += import->size;
    group->opens += import->opens;
    group->closes += import->opens - import->count;
}

void gps_leak_report_end(void) {
    struct gps_import import;
    while (gps_registry_take_import(&import))
        add_import(&import);
    report_groups();
}

/* --- the end of a context --- */

void gps_leak_reset_import(void *arg, const struct gps_import *import) {
    struct gps_reset *reset = arg;
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

/* A context with both is one report, for the same call did it. */
static void report_shared(const struct gps_reset *reset) {
    char detail[256];
    struct gps_text text = GPS_TEXT(detail);
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
            gps_references_users(&reset->held_export.record.id, users, GPS_USERS_REPORTED));
    }
    if (reset->held) {
        gps_text_str(&text, reset->opens ? "; " : "");
        say_sum(&text, reset->held, reset->held_bytes, " region");
        gps_text_str(&text, " of its own that other processes have open");
    }
    report.context = reset->context;
    report.detail = detail;
    gps_report_send(&report);
}

void gps_leak_report_reset(const struct gps_reset *reset) {
    char detail[128];
    struct gps_text text = GPS_TEXT(detail);
    if (reset->opens || reset->held)
        report_shared(reset);
    if (!reset->exports)
        return;
    struct gps_report report = gps_report_on(GPS_ASK_NOTED_RESET, GPS_KNOWN_EXPORTED);
    gps_report_about_export(&report, &reset->export);
    say_sum(&text, reset->exports, reset->export_bytes, " region");
    gps_text_str(&text, "; the end of its context freed it");
    report.count = reset->exports;
    report.detail = detail;
    gps_report_send(&report);
}

void gps_leak_reset(void) {
    state.count = 0;
}
