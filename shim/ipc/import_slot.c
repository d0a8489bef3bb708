#include "import_slot.h"

#include <errno.h>

#include "directory/region.h"
#include "directory/region_lock.h"
#include "findings/audit_record.h"
#include "findings/reporter.h"
#include "process/membership.h"
#include "process/references.h"
#include "region_events.h"

/* Writes the intent, then locks, then reads the state: never in another order (import.h). */
int gps_import_slot_begin(struct gps_import *import, struct gps_region_record *record,
                          const char **why) {
    struct gps_region_lock lock;
    gps_report_reference(gps_references_begin(&import->region, import->via, &import->slot));
    const struct gps_lease *lease = gps_membership_lease();
    if (!lease)
        return gps_membership_store()
                   ? gps_region_read(gps_membership_store(), &import->region, record, why)
                   : -ENOENT;
    const int status = gps_region_lock_and_read(lease, &import->region, record, why, &lock);
    if (lock.mapping && !gps_references_keep_lock(import->slot, lock.mapping)) {
        lock.status = gps_region_go_unlocked(lease->store);
        gps_region_unlock(lock.mapping);
    }
    gps_report_reference(lock.status);
    return status;
}

void gps_import_slot_commit(const struct gps_import *import) {
    gps_report_reference(gps_references_commit(import->slot, &import->region, import->via,
                                               import->pointer, import->generation,
                                               gps_audit_place(import->trace)));
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
