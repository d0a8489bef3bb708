/* import_slot.c - see import_slot.h. */
#include "import_slot.h"

#include "findings/reporter.h"
#include "process/references.h"
#include "region_events.h"

void gps_import_slot_begin(struct gps_import *import) {
    gps_report_reference(gps_references_begin(&import->region, import->via, &import->slot));
}

void gps_import_slot_commit(const struct gps_import *import) {
    gps_report_reference(gps_references_commit(import->slot, &import->region, import->via,
                                               import->pointer, import->generation));
    gps_region_event_opened(import);
}

bool gps_import_slot_correct(uint64_t pointer) {
    const int status = gps_references_rewrite(gps_registry_correct_slot, pointer);
    gps_report_reference(status);
    return status > 0;
}

void gps_import_slot_drop(unsigned slot) {
    gps_report_reference(gps_references_end(slot));
}

void gps_import_slot_end(const struct gps_import *import, bool with_context) {
    gps_region_event_closed(import, with_context);
    gps_import_slot_drop(import->slot);
}
