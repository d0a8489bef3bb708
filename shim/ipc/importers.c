/* importers.c - see importers.h. */
#include "importers.h"

#include "directory/processes.h"
#include "directory/region.h"
#include "process/membership.h"
#include "process/process.h"
#include "process/references.h"

enum { BUCKETS = 256 };

struct scan {
    struct gps_export *buckets[BUCKETS]; /* by the first byte of the id, which is a hash */
};

int gps_importers_of(const struct gps_export *region, struct gps_party *users, unsigned max) {
    return region->published ? gps_references_users(&region->record.id, users, max) : 0;
}

bool gps_importers_any(const struct gps_export *region) {
    return gps_importers_of(region, NULL, 0) != 0;
}

static bool mark_held(void *arg, const struct gps_proc *proc) {
    const struct scan *scan = arg;
    if (!proc->alive || gps_process_is_self(&proc->header.owner))
        return true;
    for (unsigned i = 0; i < proc->slot_count; i++) {
        const struct gps_id *id = &proc->slots[i].region;
        for (struct gps_export *region = scan->buckets[id->bytes[0]]; region;
             region = region->same_bucket) {
            if (!gps_id_equal(&region->record.id, id))
                continue;
            region->held = true;
            if (proc->slots[i].state == GPS_SLOT_OPEN) /* an intent may still come to nothing */
                region->claimed = region->final;
        }
    }
    return true;
}

void gps_importers_mark(struct gps_export *work) {
    const struct gps_store *store = gps_membership_store();
    struct scan scan = {0};
    for (struct gps_export *region = work; region; region = region->work) {
        /* Before the slots are read: its taker is then still seen, or has closed it. */
        if (region->final && !region->claimed)
            region->claimed = gps_region_taken(store, &region->record.id);
        region->held = false;
        region->same_bucket = scan.buckets[region->record.id.bytes[0]];
        scan.buckets[region->record.id.bytes[0]] = region;
    }
    const bool known = work && store && gps_proc_each(store, mark_held, &scan) == 0;
    for (struct gps_export *region = work; region; region = region->work)
        region->held |= !known;
}
