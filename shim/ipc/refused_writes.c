#include "refused_writes.h"

#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "findings/diagnose.h"
#include "findings/reporter.h"
#include "registry/padding.h"
#include "util/text.h"
#include "vmm/mapping.h"
#include "vmm/mirror.h"

/* --- memory of a rule, which has an end within its block --- */

/* A write that may be shorter than `size` is left to the driver, unless it begins past the end. */
bool gps_refused_past_end(const struct gps_write *write, int *code) {
    struct gps_write nth;
    *code = GPS_OK;
    for (uint64_t i = 0; *code == GPS_OK && i < gps_write_count(write); i++) {
        const struct gps_write *one = gps_write_nth(write, i, &nth);
        if (gps_padding_reached(one->to, one->rough ? one->size != 0 : one->size) ||
            gps_padding_reached(one->source, one->reads))
            *code = GPS_INVALID_VALUE;
    }
    return *code != GPS_OK;
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

void gps_refused_read_only(const struct gps_write *write, int code) {
    struct gps_mapping vmm;
    struct gps_write nth;
    for (uint64_t i = 0; code == GPS_INVALID_VALUE && i < gps_write_count(write); i++) {
        const struct gps_write *one = gps_write_nth(write, i, &nth);
        if (one->size && gps_mapping_at(one->to, &vmm) && !vmm.writable)
            report(one, &vmm);
    }
}

/* --- refusals that an audit reports --- */

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

/* Only in one range without gaps each byte is surely written; in other writes the first byte is. A
 * node of a graph, or a call for a descriptor, copies nothing. */
static uint64_t sure_size(const struct gps_write *write, uint64_t size) {
    return size && (write->list || write->gaps || write->rough) ? 1 : size;
}

void gps_refused_in_audit(const struct gps_write *write, int code) {
    struct gps_write nth;
    if (code != GPS_INVALID_VALUE || write->lasting)
        return;
    for (uint64_t i = 0; i < gps_write_count(write); i++) {
        const struct gps_write *one = gps_write_nth(write, i, &nth);
        gps_refused_copy(one->to, sure_size(write, one->size), code);
        gps_refused_copy(one->source, sure_size(write, one->reads), code);
    }
}
