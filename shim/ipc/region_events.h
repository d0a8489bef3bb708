/*
 * region_events.h - what happens to this process's regions and imports, for the event log.
 *
 * Inside a gps_scope. Any thread.
 */
#pragma once

#include "log/event_log.h"
#include "registry/registry.h"

/* A rule has made the region: others may open it, unless its exporter is to free it first. */
void gps_region_event_created(const struct gps_export *region);
void gps_region_event_exported(const struct gps_export *region);
/* The program freed it, and it stays: a result for its first importer, or until its last closes. */
void gps_region_event_deferred(const struct gps_export *region, bool result);
/* A free waited for importers before it was carried out or deferred. */
void gps_region_event_waited(const struct gps_export *region, uint64_t ns);
/* The memory is freed now: by the program, or after its free was deferred. */
void gps_region_event_freed(const struct gps_export *region);

/* An import is open, or is closed again; `with_context`: because its context was destroyed. */
void gps_region_event_opened(const struct gps_import *import);
/* The closed import stays mapped for the next open: gps_region_event_closed follows at its end. */
void gps_region_event_cached(const struct gps_import *import);
void gps_region_event_closed(const struct gps_import *import, bool with_context);
