#include "import_slot.h"

#include <errno.h>
#include <stdatomic.h>

#include "directory/region.h"
#include "directory/region_lock.h"
#include "driver/scope.h"
#include "findings/audit_record.h"
#include "findings/reporter.h"
#include "process/membership.h"
#include "process/references.h"
#include "region_events.h"
#include "util/forgotten.h"

/* Written intent, then lock, then read state: never in another order. */
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
    gps_report_reference(gps_references_commit_at(import->slot, &import->region, import->via,
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

/* --- opens that could not be recorded, for want of memory --- */

enum { MOST = 256 /* the slots of others stay until the process ends */ };
#define TAKEN 1 /* no pointer: a thread is at this entry */

static struct {
    _Atomic unsigned count;
    struct {
        _Atomic uint64_t pointer; /* 0: the entry is free */
        unsigned slot;
    } list[MOST];
} unrecorded;
GPS_FORGOTTEN(unrecorded);

/* The first entry with this pointer, which is TAKEN from now on; MOST: there is none. */
static unsigned take(uint64_t pointer) {
    unsigned at = 0;
    for (uint64_t found = pointer; at < MOST; at++, found = pointer)
        if (atomic_compare_exchange_strong(&unrecorded.list[at].pointer, &found, TAKEN))
            break;
    return at;
}

void gps_import_slot_keep(const struct gps_import *import) {
    const unsigned at = take(0);
    if (at == MOST)
        return;
    unrecorded.list[at].slot = import->slot;
    unrecorded.count++;
    unrecorded.list[at].pointer = import->pointer;
}

void gps_import_slot_closed(uint64_t pointer) {
    const unsigned at = unrecorded.count ? take(pointer) : MOST;
    if (at == MOST)
        return;
    const unsigned slot = unrecorded.list[at].slot;
    unrecorded.list[at].pointer = 0;
    unrecorded.count--;
    GPS_SCOPE();
    gps_import_slot_drop(slot);
}

void gps_import_slot_end(const struct gps_import *import, bool with_context) {
    gps_region_event_closed(import, with_context);
    gps_import_slot_drop(import->slot);
}
