/* report.c - see report.h. */
#include "report.h"

#include <errno.h>
#include <string.h>

#include "call.h"
#include "life.h"
#include "module.h"
#include "stack.h"
#include "text.h"

static _Atomic bool store_reported;

struct gps_report gps_report_new(enum gps_finding finding) {
    const char *api =
        gps_call.inside ? gps_call.runtime ? gps_call.runtime : gps_call.driver : NULL;
    return (struct gps_report){.finding = finding, .api = api, .device = -1};
}

void gps_report_about_export(struct gps_report *report, const struct gps_export *region) {
    report->pointer = region->pointer;
    report->size = region->record.requested;
    report->region = &region->record.id;
    report->name = *region->record.name ? region->record.name : NULL;
    report->device = region->device;
}

void gps_report_about_import(struct gps_report *report, const struct gps_import *import) {
    report->pointer = import->pointer;
    report->size = import->size;
    report->region = &import->region;
    report->name = *import->name ? import->name : NULL;
    if (import->owner.pid) {
        report->others = &import->owner;
        report->other_count = 1;
    }
}

static uint64_t hash_of(const uintptr_t *addresses, unsigned count) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (unsigned i = 0; i < count; i++)
        hash = (hash ^ addresses[i]) * 0x100000001b3u;
    return hash;
}

void gps_report_send(struct gps_report *report) {
    uintptr_t addresses[GPS_STACK_MAX];
    /* Without a call of the program's under way (the reaper, the exit) the stack says nothing. */
    const unsigned depth =
        report->api ? gps_stack_walk(addresses, gps_life_config()->options.stack_depth) : 0;
    report->stack_hash = depth ? hash_of(addresses, depth) : 0;
    if (gps_log_settles(report))
        return;
    struct gps_frame frames[depth ? depth : 1];
    for (unsigned i = 0; i < depth; i++)
        gps_stack_frame(addresses[i], &frames[i]);
    report->stack = frames;
    report->stack_count = depth;
    gps_log_report(report);
}

void gps_report_store(int status, const char *what) {
    if (atomic_exchange(&store_reported, true))
        return;
    char detail[256];
    struct gps_text text = GPS_TEXT(detail);
    gps_text_str(&text, what);
    gps_text_str(&text, ": ");
    const char *reason = strerrordesc_np(-status);
    gps_text_str(&text, status == -ENOSPC  ? "too little room is left in the file system"
                        : status == -EPERM ? "it is not ours, or others may use it"
                        : reason           ? reason
                                           : "unknown error");
    struct gps_report report = gps_report_new(GPS_STORE_UNAVAILABLE);
    report.detail = detail;
    gps_report_send(&report);
}

void gps_report_record(const struct gps_id *region, const char *why) {
    struct gps_report report = gps_report_new(GPS_RECORD_INVALID);
    report.region = region;
    report.detail = why;
    gps_report_send(&report);
}

/* --- the caller of an allocation --- */

static bool is_cuda(const struct gps_module *module) {
    const char *soname = gps_module_soname(module);
    return soname &&
           (strncmp(soname, "libcudart.so", 12) == 0 || strncmp(soname, "libcuda.so", 10) == 0);
}

static bool name_if_users(const void *address, char *name, size_t size) {
    struct gps_module module;
    if (!gps_module_of(address, &module) || is_cuda(&module))
        return false;
    const char *path = *module.path ? module.path : gps_life_self()->command;
    const char *slash = strrchr(path, '/');
    struct gps_text text = gps_text_on(name, size);
    gps_text_str(&text, slash ? slash + 1 : path);
    return true;
}

void gps_report_caller(char *name, size_t size) {
    uintptr_t addresses[GPS_STACK_MAX];
    *name = '\0';
    if (name_if_users(gps_call.runtime ? gps_call.runtime_caller : gps_call.driver_caller, name,
                      size))
        return;
    const unsigned count = gps_stack_walk(addresses, GPS_STACK_MAX);
    for (unsigned i = 0; i < count; i++)
        if (name_if_users((const void *)addresses[i], name, size))
            return;
}
