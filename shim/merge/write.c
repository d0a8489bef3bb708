/* write.c - see write.h. */
#include "write.h"

#include "allocation.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "findings/reporter.h"
#include "load.h"
#include "unmerge.h"
#include "util/text.h"
#include "vmm/mapping.h"

bool gps_write_seen;

void gps_write_start(const struct gps_config *config, const struct gps_program *program) {
    gps_write_seen = gps_merge_active;
    for (size_t i = 0; i < config->rule_count; i++) {
        const struct gps_rule *rule = &config->rules[i];
        if (config->options.mode == GPS_MODE_SHARE && rule->backing == GPS_RULE_VMM &&
            rule->access == GPS_ACCESS_RO &&
            gps_rule_is_for(rule, program->name, program->executable))
            gps_write_seen = true;
    }
}

void gps_write_reset(void) {
    gps_write_seen = false;
}

/* --- work --- */

/* Whatever the work touches has memory then. Without success it is outside. */
static int pass_in(uint64_t stream, struct gps_gate_pass *pass) {
    gps_gate_enter(pass);
    while (__builtin_expect(
        atomic_load_explicit(&gps_gate_state, memory_order_relaxed) & GPS_GATE_BACK, 0)) {
        gps_gate_leave(pass);
        const int code = gps_merge_back_all();
        if (code != GPS_OK)
            return code;
        gps_gate_enter(pass);
    }
    gps_streams_note(pass->slot, stream);
    return GPS_OK;
}

/* Where there is not enough memory the driver knows whether the copy needs it: it refuses one from
 * where there is none, and no harm is done. */
static void pass_copy(uint64_t stream, struct gps_gate_pass *pass) {
    if (pass_in(stream, pass) == GPS_OK)
        return;
    gps_gate_enter(pass);
    gps_streams_note(pass->slot, stream);
}

bool gps_work_begin(uint64_t stream, bool copy, struct gps_gate_pass *pass, int *code) {
    *code = GPS_OK;
    if (copy)
        pass_copy(stream, pass);
    else
        *code = pass_in(stream, pass);
    return *code == GPS_OK;
}

/* --- the ranges of a write --- */

uint64_t gps_write_count(const struct gps_write *write) {
    return write->list ? write->count : 1;
}

struct gps_write gps_write_nth(const struct gps_write *write, uint64_t n) {
    struct gps_write one = *write;
    if (write->list)
        write->range(&one, n);
    else if (write->rows > 1)
        one.size += (write->rows - 1) * write->pitch;
    return one;
}

static bool is_of_closed(const struct gps_write *one) {
    return (one->size && gps_registry_closed(one->to)) || gps_registry_closed(one->source);
}

bool gps_write_is_of_closed(const struct gps_write *write) {
    bool closed = !write->list && is_of_closed(write);
    for (uint64_t i = 0; write->list && !closed && i < write->count; i++) {
        const struct gps_write one = gps_write_nth(write, i);
        closed = is_of_closed(&one);
    }
    return closed;
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

static void note_refused(const struct gps_write *write) {
    struct gps_mapping vmm;
    if (write->size && gps_mapping_at(write->to, &vmm) && !vmm.writable)
        report_read_only(write, &vmm);
}

/* --- around the driver's call --- */

static bool is_upload(const struct gps_write *write) {
    if (write->kind != GPS_WRITE_ANY)
        return write->kind == GPS_WRITE_UPLOAD;
    const enum gps_memory_kind kind = gps_ops->kind((uintptr_t)write->from);
    return kind == GPS_MEMORY_HOST || kind == GPS_MEMORY_UNKNOWN;
}

static void end_first(const struct gps_write *write, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        const struct gps_write one = gps_write_nth(write, i);
        if (gps_area_near(one.to, one.size))
            gps_unmerge_end(one.to, one.size);
    }
}

static int begin_all(const struct gps_write *write) {
    int code = GPS_OK;
    for (uint64_t i = 0; code == GPS_OK && i < gps_write_count(write); i++) {
        const struct gps_write one = gps_write_nth(write, i);
        if (one.size && gps_area_near(one.to, one.size))
            code = gps_unmerge_begin(one.to, one.size, is_upload(&one),
                                     write->ordered && gps_ops->capturing(write->stream));
        if (code != GPS_OK)
            end_first(write, i); /* nothing of them is written */
    }
    return code;
}

/* Copies from the host touch nothing but what they write. */
static void pass_write(const struct gps_write *write, struct gps_gate_pass *pass) {
    if (write->kind != GPS_WRITE_UPLOAD) {
        pass_copy(write->stream, pass);
        return;
    }
    gps_gate_enter(pass);
    gps_streams_note(pass->slot, write->stream);
}

bool gps_write_begin(const struct gps_write *write, struct gps_gate_pass *pass, int *code) {
    if (gps_load_takes(write)) {
        *code = gps_load(write);
        return false;
    }
    *code = begin_all(write);
    if (*code != GPS_OK)
        return false;
    if (gps_merge_active)
        pass_write(write, pass);
    return true;
}

void gps_write_end(const struct gps_write *write, const struct gps_gate_pass *pass, int code) {
    if (gps_merge_active)
        gps_gate_leave(pass);
    end_first(write, gps_write_count(write));
    gps_work_checked(code);
    for (uint64_t i = 0; code == GPS_INVALID_VALUE && i < gps_write_count(write); i++) {
        const struct gps_write one = gps_write_nth(write, i);
        note_refused(&one);
    }
}
