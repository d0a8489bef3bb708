#include "pid_collision.h"

#include "directory/processes.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "process/membership.h"
#include "process/process.h"

enum { NO_PID = 1 << 30 /* pids end at 1 << 22 */ };

static bool collides(const struct gps_owner *exporter) {
    const struct gps_owner *self = gps_process_self();
    return exporter->pid == self->pid && exporter->pid_ns && self->pid_ns &&
           exporter->pid_ns != self->pid_ns;
}

static bool exporter_is_alive(const struct gps_owner *exporter) {
    GPS_SCOPE();
    return gps_membership_store() && gps_lease_probe(gps_membership_store(), exporter) == GPS_ALIVE;
}

/* The same pid for an exporter in every process that opens its handles. */
static uint32_t other_pid(const struct gps_owner *exporter) {
    const uint64_t mixed =
        (exporter->pid_ns ^ exporter->start ^ exporter->nonce) * 0x9e3779b97f4a7c15u;
    return NO_PID | (uint32_t)(mixed >> 34);
}

int gps_pid_collision_open(const struct gps_import *import, uint64_t *pointer) {
    const struct gps_owner *exporter = &import->exporter.owner;
    if (!import->context || import->vmm || gps_process_config()->options.mode != GPS_MODE_SHARE ||
        !collides(exporter) || !(import->opens.open || exporter_is_alive(exporter)))
        return GPS_INVALID_CONTEXT;
    return gps_ops->open_handle_as(import->handle, exporter->pid, other_pid(exporter), pointer);
}
