/* importers.c - see importers.h. */
#include "importers.h"

#include <string.h>

#include "directory/processes.h"
#include "directory/region.h"
#include "process/membership.h"
#include "process/process.h"
#include "process/references.h"
#include "region_events.h"
#include "threads/wait.h"
#include "util/clock.h"
#include "util/lock.h"

enum {
    BUCKETS = 256,
    SILENT_MAX = 64,
    LET_GO_NANOS = 5000000,
};

/* Processes that cached a region when their time to let go of it was over. */
static struct {
    GPS_LOCK(GPS_RANK_IMPORTERS) lock;
    struct {
        uint64_t nonce;
        struct gps_id region;
    } silent[SILENT_MAX];
    unsigned next;
} state;

struct scan {
    struct gps_export *buckets[BUCKETS]; /* by the first byte of the id, which is a hash */
    bool unknown;                        /* one of them may have any region */
};

int gps_importers_and_cache_holders(const struct gps_export *region, struct gps_party *users,
                                    unsigned max, struct gps_cache_holders *holders) {
    holders->count = 0;
    return region->published ? gps_references_holders(&region->record.id, users, max, holders) : 0;
}

int gps_importers_of(const struct gps_export *region, struct gps_party *users, unsigned max) {
    struct gps_cache_holders holders;
    return gps_importers_and_cache_holders(region, users, max, &holders);
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

static bool is_cached(const struct gps_export *region) {
    struct gps_cache_holders holders;
    return gps_importers_and_cache_holders(region, NULL, 0, &holders) == 0 && holders.count > 0;
}

static bool is_silent(uint64_t nonce) {
    bool found = false;
    for (unsigned i = 0; i < SILENT_MAX; i++)
        found |= state.silent[i].nonce == nonce;
    return found;
}

/* Those that still cache it are silent from now on (`add`), or: whether all are known to be. */
static bool are_silent(const struct gps_export *region, bool add) {
    struct gps_cache_holders holders;
    gps_importers_and_cache_holders(region, NULL, 0, &holders);
    bool all = holders.count <= GPS_CACHE_HOLDERS_KNOWN;
    gps_lock_take(&state.lock);
    for (unsigned i = 0; i < holders.count && i < GPS_CACHE_HOLDERS_KNOWN; i++) {
        const bool known = is_silent(holders.nonces[i]);
        all &= known;
        if (add && !known) {
            state.silent[state.next % SILENT_MAX].nonce = holders.nonces[i];
            state.silent[state.next++ % SILENT_MAX].region = region->record.id;
        }
    }
    gps_lock_give(&state.lock);
    return all;
}

void gps_importers_let_go(const struct gps_export *region) {
    if (are_silent(region, false))
        return;
    wait_while(is_cached, region, LET_GO_NANOS);
    are_silent(region, true);
}

void gps_importers_freed(const struct gps_export *region) {
    gps_lock_take(&state.lock);
    for (unsigned i = 0; i < SILENT_MAX; i++)
        if (gps_id_equal(&state.silent[i].region, &region->record.id))
            state.silent[i].nonce = 0;
    gps_lock_give(&state.lock);
}

void gps_importers_reset(void) {
    memset((void *)&state, 0, sizeof(state));
}

/* --- one scan for many regions --- */

static void mark(struct gps_export *region, uint32_t slot_state) {
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
                mark(region, proc->slots[i].state);
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
        region->users.held |= !known;
}
