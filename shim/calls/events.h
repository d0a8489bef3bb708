/*
 * events.h - the calls on events: shared ones, and the second destroy, which crashes the driver.
 *
 * Every event that is destroyed is remembered by address until one is created there again. Only
 * events made for other processes, or opened from them, are recorded while they live; those that
 * this process has opened are published, as memory is. Any thread may call the functions, and none
 * needs a scope. The codes are the driver's, and outputs are set only on success.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "frames/exchange.h"
#include "gpushare/region.h"
#include "merge/work.h"
#include "process/process.h"
#include "registry/registry.h"

enum gps_event_kind {
    GPS_EVENT_PRIVATE,
    GPS_EVENT_SHARED,
    GPS_EVENT_SHARED_AND_TIMED, /* for other processes and with timing: drivers refuse it */
};
/* The driver has answered `code`; where that is success, `event` is the new one. */
void gps_event_created(int code, uint64_t event, enum gps_event_kind kind);

typedef int gps_event_handle_fn(uint64_t event, uint8_t handle[GPS_HANDLE_BYTES]);
int gps_event_export(uint64_t event, uint8_t handle[GPS_HANDLE_BYTES], gps_event_handle_fn *get);

typedef int gps_event_open_fn(const uint8_t handle[GPS_HANDLE_BYTES], uint64_t *event);
int gps_event_open(const uint8_t handle[GPS_HANDLE_BYTES], uint64_t *event,
                   gps_event_open_fn *open);

typedef int gps_event_fn(uint64_t event);
int gps_event_destroy(uint64_t event, gps_event_fn *destroy);

/* Whether a use of an event needs no look: other processes know none, and nothing is merged. */
static inline bool gps_event_use_is_plain(void) {
    return __builtin_expect(gps_process_phase() == GPS_PHASE_ON && !gps_gate_active &&
                                !gps_frames_active && !gps_registry_has_events(),
                            1);
}

/* The program uses an event, or waits for it: called before the driver, which may not return. True:
 * it is destroyed, and reported. The last: it was recorded, or will be by a graph. In audits. */
bool gps_event_used(uint64_t event);
void gps_event_waited(uint64_t event);
void gps_event_recorded(uint64_t event);
