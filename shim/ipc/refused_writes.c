/* refused_writes.c - see refused_writes.h. */
#include "refused_writes.h"

#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "findings/reporter.h"
#include "merge/allocation.h"
#include "open_cache.h"
#include "util/text.h"
#include "vmm/mapping.h"
#include "writes/write.h"

/* --- memory that the program has closed --- */

static bool is_of_closed(const struct gps_write *one) {
    return (one->size && gps_registry_closed(one->to)) || gps_registry_closed(one->source);
}

static bool refuse(const struct gps_write *write, struct gps_gate_pass *pass, int *code) {
    bool closed = !write->list && is_of_closed(write);
    (void)pass;
    struct gps_write room;
    for (uint64_t i = 0; write->list && !closed && i < write->count; i++) {
        const struct gps_write *one = gps_write_nth(write, i, &room);
        closed = is_of_closed(one);
    }
    if (closed)
        *code = GPS_INVALID_VALUE;
    return !closed;
}

/* --- memory that is mapped read-only --- */

static void report(const struct gps_write *write, const struct gps_mapping *vmm) {
    char detail[160];
    struct gps_text text = GPS_TEXT(detail);
    struct gps_import import;
    GPS_SCOPE();
    struct gps_report report = gps_report_new(GPS_WRITE_READ_ONLY);
    if (gps_registry_import_at(vmm->pointer, &import))
        gps_report_about_import(&report, &import);
    gps_text_add(&text, "%lu bytes at offset %lu of the region", write->size,
                 write->to - vmm->pointer);
    report.pointer = vmm->pointer;
    report.region = &vmm->region;
    report.detail = detail;
    gps_report_send(&report);
}

static void report_refused(const struct gps_write *write, const struct gps_gate_pass *pass,
                           int code) {
    struct gps_mapping vmm;
    (void)pass;
    struct gps_write room;
    for (uint64_t i = 0; code == GPS_INVALID_VALUE && i < gps_write_count(write); i++) {
        const struct gps_write *one = gps_write_nth(write, i, &room);
        if (one->size && gps_mapping_at(one->to, &vmm) && !vmm.writable)
            report(one, &vmm);
    }
}

/* --- who listens --- */

static bool maps_read_only(const struct gps_rule *rule, const struct gps_program *program) {
    return rule->backing == GPS_RULE_VMM && rule->access == GPS_ACCESS_RO &&
           gps_rule_is_for(rule, program->name, program->executable);
}

void gps_refused_writes_start(const struct gps_config *config, const struct gps_program *program) {
    bool any = gps_merge_active; /* its calls are seen in any case */
    for (size_t i = 0; i < config->rule_count; i++)
        any |= maps_read_only(&config->rules[i], program);
    if (gps_open_cache_used)
        gps_write_listen(refuse, NULL);
    if (any && config->options.mode == GPS_MODE_SHARE)
        gps_write_listen(NULL, report_refused);
}
