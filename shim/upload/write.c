/* write.c - see write.h. */
#include "write.h"

#include "audit/reporter.h"
#include "follower.h"
#include "leader.h"
#include "process/driver_ops.h"
#include "process/scope.h"
#include "upload.h"
#include "util/text.h"
#include "vmm/mapping.h"

bool gps_write_seen;

void gps_write_start(const struct gps_config *config, const struct gps_owner *self) {
    for (size_t i = 0; i < config->rule_count; i++) {
        const struct gps_rule *rule = &config->rules[i];
        if (config->options.mode == GPS_MODE_SHARE && rule->backing == GPS_RULE_VMM &&
            (gps_rule_read_only(rule) || gps_rule_written(rule)) &&
            gps_glob_match(rule->program, self->command))
            gps_write_seen = true;
    }
}

void gps_write_reset(void) {
    gps_write_seen = false;
}

/* --- the ranges of a write --- */

static uint64_t count_of(const struct gps_write *write) {
    return write->list ? write->count : write->rows ? write->rows : 1;
}

/* Several ranges are no upload that could be compared. */
static struct gps_write nth(const struct gps_write *write, uint64_t n) {
    struct gps_write one = *write;
    if (write->list) {
        one.to = write->list[n];
        one.size = write->sizes[n];
        one.list = NULL;
    } else {
        one.to += n * write->pitch;
    }
    one.rows = 1;
    if (count_of(write) > 1 && one.kind != GPS_WRITE_SOME)
        one.kind = GPS_WRITE_OTHER;
    return one;
}

bool gps_write_concerns(const struct gps_write *write) {
    struct gps_mapping vmm;
    const uint64_t count = write->list ? write->count : 1; /* rows lie in one allocation */
    for (uint64_t i = 0; i < count; i++)
        if (gps_mapping_at(nth(write, i).to, &vmm))
            return true;
    return false;
}

/* --- a write into memory that is shared read-only --- */

static void report_read_only(const struct gps_write *write, const struct gps_mapping *vmm) {
    char detail[160];
    struct gps_text text = GPS_TEXT(detail);
    struct gps_import import;
    struct gps_scope scope;
    gps_scope_begin(&scope);
    struct gps_report report = gps_report_new(GPS_WRITE_READ_ONLY);
    if (gps_registry_import_at(vmm->pointer, &import))
        gps_report_about_import(&report, &import);
    gps_text_add(&text, "%lu bytes at offset %lu of the region", write->size,
                 write->to - vmm->pointer);
    report.pointer = vmm->pointer;
    report.region = &vmm->region;
    report.detail = detail;
    gps_report_send(&report);
    gps_scope_end(&scope);
}

/* --- around the driver's call --- */

static bool begin_one(const struct gps_write *write, int *code) {
    struct gps_mapping vmm;
    bool forward = true;
    struct gps_upload *upload =
        write->size && gps_mapping_at(write->to, &vmm) ? gps_upload_get(vmm.pointer) : NULL;
    if (!upload)
        return true;
    if (upload->leads)
        gps_leader_begin(upload);
    else
        forward = gps_follower_write(upload, write, code);
    gps_upload_put(upload);
    return forward;
}

static void end_one(const struct gps_write *write, int code) {
    struct gps_mapping vmm;
    if (!write->size || !gps_mapping_at(write->to, &vmm))
        return;
    struct gps_upload *upload = gps_upload_get(vmm.pointer);
    if (upload && upload->leads)
        gps_leader_end(upload, write, code);
    else if (code == GPS_INVALID_VALUE && !vmm.writable)
        report_read_only(write, &vmm);
    if (upload)
        gps_upload_put(upload);
}

static void end_first(const struct gps_write *write, uint64_t count, int code) {
    for (uint64_t i = 0; i < count; i++) {
        const struct gps_write one = nth(write, i);
        end_one(&one, code);
    }
}

bool gps_write_begin(const struct gps_write *write, int *code) {
    for (uint64_t i = 0; i < count_of(write); i++) {
        const struct gps_write one = nth(write, i);
        if (!begin_one(&one, code)) {
            end_first(write, i, GPS_OUT_OF_MEMORY); /* nothing of them is written */
            return false;
        }
    }
    return true;
}

void gps_write_end(const struct gps_write *write, int code) {
    end_first(write, count_of(write), code);
}
