/*
 * region_history.h - what was done to a region and where, as its owner tells other processes.
 *
 * The stacks of a region's allocation, export and free go into the directory with its record
 * (region.h), so that an importer's report can say "freed by producer, at ...". This is done only
 * where stacks are kept (mode = audit). The functions are called inside a gps_scope.
 */
#pragma once

#include "directory/store.h"
#include "log/log.h"
#include "registry/registry.h"

/* Publishes the stacks of a published region. `freed` is GPS_NO_TRACE until it is freed. */
void gps_region_history_publish(const struct gps_export *region, uint32_t freed);

/* The same of any record that this process owns: the stacks by enum gps_history_event. */
void gps_history_publish(const struct gps_store *store, const struct gps_region_record *record,
                         const uint32_t traces[GPS_HISTORY_EVENTS]);

/* Sets the frames of one event, as published. Returns their number, which is at most `max`. */
unsigned gps_region_history_frames(const struct gps_region_traces *traces,
                                   enum gps_history_event event, struct gps_frame *frames,
                                   unsigned max);
