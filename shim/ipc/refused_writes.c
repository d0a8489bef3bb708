#include "refused_writes.h"

#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "findings/diagnose.h"
#include "findings/reporter.h"
#include "merge/allocation.h"
#include "registry/padding.h"
#include "util/text.h"
#include "vmm/mapping.h"
#include "vmm/mirror.h"
#include "writes/write.h"

/* --- memory of a rule, which has an end within its block --- */

/* What may be less than `size` says is the driver's to refuse, unless it begins there. */
static bool refuse_past_end(const struct gps_write *write, struct gps_gate_pass *pass, int *code) {
    struct gps_write nth;
    (void)pass;
    *code = GPS_OK;
    for (uint64_t i = 0; *code == GPS_OK && i < gps_write_count(write); i++) {
        const struct gps_write *one = gps_write_nth(write, i, &nth);
        if (gps_padding_reached(one->to, one->rough ? one->size != 0 : one->size) ||
            gps_padding_reached(one->source, one->reads))
            *code = GPS_INVALID_VALUE;
    }
    return *code == GPS_OK;
}

/* --- memory that is mapped read-only --- */

static void report(const struct gps_write *write, const struct gps_mapping *vmm) {
    GPS_NEW_TEXT(text, 160);
    struct gps_import import;
    GPS_SCOPE();
    struct gps_report report = gps_report_new(GPS_WRITE_READ_ONLY);
    if (gps_registry_import_at(vmm->pointer, &import))
        gps_report_about_import(&report, &import);
    gps_text_add(&text, "%lu bytes at offset %lu of the region", write->size,
                 write->to - vmm->pointer);
    report.pointer = vmm->pointer;
    report.region = &vmm->region;
    report.detail = text.bytes;
    gps_report_send(&report);
}

static void report_refused(const struct gps_write *write, int code) {
    struct gps_mapping vmm;
    struct gps_write nth;
    for (uint64_t i = 0; code == GPS_INVALID_VALUE && i < gps_write_count(write); i++) {
        const struct gps_write *one = gps_write_nth(write, i, &nth);
        if (one->size && gps_mapping_at(one->to, &vmm) && !vmm.writable)
            report(one, &vmm);
    }
}

/* --- what an audit looks at --- */

/* VMM memory of another process that a token has open, and no more of it. */
static bool is_behind_token(uint64_t address, uint64_t size) {
    GPS_NEW_TEXT(text, 160);
    struct gps_import import;
    struct gps_id token;
    uint64_t end;
    if (!gps_mirror_ends(address, size, &end, &token) ||
        !gps_registry_opened_anywhere(&token, &import))
        return false;
    struct gps_report report = gps_report_on(GPS_ASK_COPIED, GPS_KNOWN_PARTLY);
    gps_report_about_import(&report, &import);
    gps_text_add(&text, "nothing is open at 0x%lx, 0x%lx bytes behind the beginning", end,
                 end - import.pointer);
    report.detail = text.bytes;
    if (report.finding != GPS_NO_FINDING)
        gps_report_send(&report);
    return true;
}

void gps_refused_copy(uint64_t address, uint64_t size, int code) {
    bool is_told = false;
    if (code == GPS_INVALID_VALUE && gps_mirror_any()) {
        GPS_SCOPE();
        is_told = is_behind_token(address, size);
    }
    if (!is_told)
        gps_diagnose_copy(address, size, code);
}

/* Only of one range without gaps is each byte surely to be written; of others the first one is. A
 * node of a graph, or who asks for a descriptor, copies nothing. */
static uint64_t sure_size(const struct gps_write *write, uint64_t size) {
    return size && (write->list || write->gaps || write->rough) ? 1 : size;
}

static void diagnose(const struct gps_write *write, int code) {
    struct gps_write nth;
    if (code != GPS_INVALID_VALUE || write->lasting)
        return;
    for (uint64_t i = 0; i < gps_write_count(write); i++) {
        const struct gps_write *one = gps_write_nth(write, i, &nth);
        gps_refused_copy(one->to, sure_size(write, one->size), code);
        gps_refused_copy(one->source, sure_size(write, one->reads), code);
    }
}

/* --- who listens --- */

/* Whether an import is read-only its exporter's rule says, which another file may hold. */
static bool gives_others_memory(const struct gps_rule *rule, const struct gps_program *program) {
    return rule->role != GPS_ROLE_MERGE &&
           gps_rule_is_for(rule, program->name, program->executable);
}

void gps_refused_writes_start(const struct gps_config *config, const struct gps_program *program) {
    bool any = false;
    for (size_t i = 0; i < config->rule_count; i++)
        any |= gives_others_memory(&config->rules[i], program);
    if (any && config->options.mode == GPS_MODE_SHARE)
        gps_write_listen(refuse_past_end, NULL, GPS_WRITE_NEAR);
    if ((any || gps_merge_active) && config->options.mode == GPS_MODE_SHARE)
        gps_write_listen_refused(report_refused);
    if (config->options.mode == GPS_MODE_AUDIT)
        gps_write_listen_refused(diagnose);
}
