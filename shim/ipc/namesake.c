/* namesake.c - see namesake.h. */
#include "namesake.h"

#include <string.h>

#include "directory/processes.h"
#include "process/driver_ops.h"
#include "process/membership.h"
#include "process/process.h"
#include "process/scope.h"

enum {
    PID_AT = 8,
    NO_PID = 1 << 30, /* pids end at 1 << 22 */
};

static bool is_namesake(const struct gps_owner *exporter) {
    const struct gps_owner *self = gps_process_self();
    return exporter->pid == self->pid && exporter->pid_ns && self->pid_ns &&
           exporter->pid_ns != self->pid_ns;
}

static bool has_pid(const uint8_t handle[GPS_HANDLE_BYTES], uint32_t pid) {
    return memcmp(handle + PID_AT, &pid, sizeof(pid)) == 0;
}

static bool is_alive(const struct gps_owner *exporter) {
    struct gps_scope scope;
    gps_scope_begin(&scope);
    const bool alive =
        gps_membership_store() && gps_lease_probe(gps_membership_store(), exporter) == GPS_ALIVE;
    gps_scope_end(&scope);
    return alive;
}

/* The exporter's, in every process that opens its handles. */
static uint32_t other_pid(const struct gps_owner *exporter) {
    const uint64_t mixed =
        (exporter->pid_ns ^ exporter->start ^ exporter->nonce) * 0x9e3779b97f4a7c15u;
    return NO_PID | (uint32_t)(mixed >> 34);
}

int gps_namesake_open(const struct gps_import *import, uint64_t *pointer) {
    const struct gps_owner *exporter = &import->exporter.owner;
    uint8_t handle[GPS_HANDLE_BYTES];
    if (!import->context || import->vmm || gps_process_config()->options.mode != GPS_MODE_SHARE ||
        !is_namesake(exporter) || !has_pid(import->handle, exporter->pid) ||
        !(import->count || is_alive(exporter)))
        return GPS_INVALID_CONTEXT;
    const uint32_t pid = other_pid(exporter);
    memcpy(handle, import->handle, sizeof(handle));
    memcpy(handle + PID_AT, &pid, sizeof(pid));
    return gps_ops->open_handle(handle, pointer);
}
