#include "importers.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "directory/region.h"
#include "directory/region_lock.h"
#include "process/membership.h"
#include "process/process.h"
#include "process/references.h"
#include "region_events.h"
#include "threads/watch.h"
#include "util/clock.h"

enum { BUCKETS = 256 };
#define UNMAP_WAIT (GPS_SECOND / 200) /* for processes that cache a region */

static struct { _Atomic uint64_t next_wait; /* for caches (CLOCK_MONOTONIC) */ } state;

struct scan {
    struct gps_export *buckets[BUCKETS]; /* by the first byte of the id, which is a hash */
    bool unknown; /* the slots of a process are unknown: it may have any region */
};

static int importers_find(const struct gps_export *region, struct gps_party *users, unsigned max,
                          unsigned *caches) {
    *caches = 0;
    if (!region->published)
        return 0;
    if (region->lockable && !gps_region_may_be_locked(gps_membership_store(), &region->record.id))
        return 0;
    return gps_references_users(&region->record.id, users, max, caches);
}

/* A region whose importers are not known counts as held, so that no importer loses it. In an audit
 * no importer does, and none is reported without proof. */
static bool importers_hold(int count) {
    return count > 0 || (count < 0 && !gps_process_audits());
}

int gps_importers_of(const struct gps_export *region, struct gps_party *users, unsigned max) {
    unsigned caches;
    return importers_find(region, users, max, &caches);
}

int gps_importers_find(struct gps_export *region, struct gps_party *users, unsigned max) {
    unsigned caches;
    const int count = importers_find(region, users, max, &caches);
    region->users.held = importers_hold(count);
    region->users.cached = count == 0 && caches > 0;
    return count;
}

bool gps_importers_any(const struct gps_export *region) {
    return gps_importers_of(region, NULL, 0) != 0;
}

/* --- waiting --- */

/* Returns how long it took. */
static uint64_t wait_while(bool (*held)(const struct gps_export *region),
                           const struct gps_export *region, uint64_t nanos) {
    const uint64_t begun = gps_clock_monotonic(), until = begun + nanos;
    struct gps_wait wait;
    gps_wait_begin(&wait, GPS_VIA_WAIT_IMPORTERS, region->record.name, &region->record.id, nanos,
                   GPS_WATCH_PROCS);
    for (uint64_t now = begun; now < until && held(region); now = gps_clock_monotonic())
        gps_wait_turn(&wait, until - now);
    gps_wait_end(&wait);
    return gps_clock_monotonic() - begun;
}

void gps_importers_wait(const struct gps_export *region, uint64_t nanos) {
    gps_region_event_waited(region, wait_while(gps_importers_any, region, nanos));
}

static bool is_only_cached(const struct gps_export *region) {
    unsigned caches;
    return importers_find(region, NULL, 0, &caches) == 0 && caches > 0;
}

void gps_importers_wait_for_caches(const struct gps_export *region) {
    if (gps_clock_monotonic() >= atomic_load(&state.next_wait) &&
        wait_while(is_only_cached, region, UNMAP_WAIT) >= UNMAP_WAIT)
        atomic_store(&state.next_wait, gps_clock_monotonic() + GPS_SECOND);
}

/* --- one scan for many regions --- */

static void importers_mark(struct gps_export *region, uint32_t slot_state) {
    if (slot_state == GPS_SLOT_CACHED)
        region->users.cached = true;
    else
        region->users.held = true;
    if (slot_state != GPS_SLOT_INTENT && gps_export_is_untaken(region))
        region->users.taken = true; /* an intent may still come to nothing */
}

static bool mark_held(void *arg, const struct gps_proc *proc) {
    struct scan *scan = arg;
    if (!proc->alive || gps_process_is_self(&proc->header.owner))
        return true;
    scan->unknown |= proc->unknown;
    for (unsigned i = 0; i < proc->slot_count; i++) {
        const struct gps_id *id = &proc->slots[i].region;
        for (struct gps_export *region = scan->buckets[id->bytes[0]]; region;
             region = region->same_bucket) {
            if (gps_id_equal(&region->record.id, id))
                importers_mark(region, proc->slots[i].state);
        }
    }
    return true;
}

void gps_importers_mark(struct gps_export *work) {
    const struct gps_store *store = gps_membership_store();
    struct scan scan = {0};
    for (struct gps_export *region = work; region; region = region->work) {
        /* The mark is read before the slots: a process that has taken the result is still seen
         * there, or has closed it. */
        if (gps_export_is_untaken(region))
            region->users.taken = gps_region_taken(store, &region->record.id);
        region->users.held = region->users.cached = false;
        region->same_bucket = scan.buckets[region->record.id.bytes[0]];
        scan.buckets[region->record.id.bytes[0]] = region;
    }
    const bool known =
        work && store && gps_proc_each(store, mark_held, &scan) == 0 && !scan.unknown;
    for (struct gps_export *region = work; region; region = region->work)
        region->users.held |= !known && importers_hold(-EIO);
}
