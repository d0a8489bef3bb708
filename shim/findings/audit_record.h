/*
 * audit_record.h - what an audited process publishes besides regions, so that the report of another
 * one names both sides.
 *
 * Also the stacks of the calls on a region. Records in audit/ (gpushare/region.h): of the events
 * that the process has exported, and of the places at which it opens objects of other processes.
 * They are written and looked for in mode = audit alone. They outlive the process, until the last
 * one leaves the directory. Any thread may call the functions, inside a gps_scope.
 */
#pragma once

#include "log/log.h"
#include "registry/registry.h"

/* The number of the place with this stack, for gps_slot.place. It is published once. 0: none. */
uint64_t gps_audit_place(uint32_t trace);
/* Reads the record of a place. */
bool gps_audit_find_place(const struct gps_owner *owner, uint64_t place,
                          struct gps_region_record *record);

/* Called before the program gets the handle. If the event cannot be published, the directory says
 * so: a missing record does not prove then that an event was never exported. */
void gps_audit_event_exported(const struct gps_event *event,
                              const uint8_t handle[GPS_HANDLE_BYTES]);
void gps_audit_event_destroyed(const struct gps_event *event, uint32_t destroyed);
/* HAS_NOT also outside of an audit. UNREADABLE: it may exist, but could not be read. */
enum gps_audit_answer { GPS_AUDIT_HAS, GPS_AUDIT_HAS_NOT, GPS_AUDIT_UNREADABLE };
enum gps_audit_answer gps_audit_ask_event(const struct gps_id *id,
                                          struct gps_region_record *record);
/* The first notes that a process has recorded the event; the second tells whether any ever did. */
void gps_audit_event_recorded(const struct gps_id *id);
bool gps_audit_event_is_recorded(const struct gps_id *id);

/* --- calls on a region and their places, as its owner publishes them --- */

/* Publishes the stacks of a published region. `freed` is GPS_NO_TRACE until it is freed. */
void gps_audit_region_publish(const struct gps_export *region, uint32_t freed);

/* Sets the frames of one event, as published. Returns their number, which is at most `max`. */
unsigned gps_audit_region_frames(const struct gps_region_traces *traces,
                                 enum gps_history_event event, struct gps_frame *frames,
                                 unsigned max);
