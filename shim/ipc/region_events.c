#include "region_events.h"

#include <string.h>

/* --- regions --- */

static void region_event_tell(const struct gps_export *region, struct gps_event_line line) {
    const struct gps_region_record *record = &region->record;
    line.region = &record->id;
    line.name = record->name;
    line.size = record->requested;
    if (strcmp(line.what, "freed") != 0)
        line.device = record->device;
    gps_event_log_write(&line);
}

void gps_region_event_exported(const struct gps_export *region) {
    const bool is_token = region->record.backing == GPS_BACKING_RUN;
    region_event_tell(region, (struct gps_event_line){.what = "exported",
                                                      .how = is_token       ? "token"
                                                             : region->rule ? "rule"
                                                                            : "program"});
}

void gps_region_event_created(const struct gps_export *region) {
    region_event_tell(region,
                      (struct gps_event_line){.what = "created", .time = region->record.created});
    if (region->record.status.state == GPS_STATE_READY)
        gps_region_event_exported(region);
}

void gps_region_event_deferred(const struct gps_export *region, bool result) {
    region_event_tell(
        region, (struct gps_event_line){.what = "freed", .how = result ? "handover" : "deferred"});
}

void gps_region_event_waited(const struct gps_export *region, uint64_t ns) {
    region_event_tell(region,
                      (struct gps_event_line){.what = "waited", .ns = ns, .how = "importers"});
}

void gps_region_event_freed(const struct gps_export *region) {
    const bool late = region->state == GPS_EXPORT_DEFERRED || region->state == GPS_EXPORT_RESULT ||
                      region->state == GPS_EXPORT_FREEING;
    const bool kept = region->vmm && region->record.keep != GPS_KEEP_OWNER;
    region_event_tell(region, (struct gps_event_line){.what = "freed",
                                                      .how = late   ? "late"
                                                             : kept ? "kept"
                                                                    : "now"});
}

/* --- imports --- */

static const char *by(const struct gps_import *import) {
    return import->via == GPS_VIA_RULE ? "rule" : "program";
}

static void tell_import(const struct gps_import *import, const char *what, const char *how) {
    gps_event_log_write(&(struct gps_event_line){.what = what,
                                                 .region = &import->region,
                                                 .name = import->name,
                                                 .size = import->size,
                                                 .how = how});
}

void gps_region_event_opened(const struct gps_import *import) {
    tell_import(import, "opened", by(import));
}

void gps_region_event_cached(const struct gps_import *import) {
    tell_import(import, "cached", NULL);
}

void gps_region_event_closed(const struct gps_import *import, bool with_context) {
    tell_import(import, "closed", with_context ? "context" : by(import));
}
