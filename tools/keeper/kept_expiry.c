/*
 * kept_expiry.c - counts the holders of kept regions, and drops expired ones (kept_regions.h).
 *
 * One pass over procs/ serves all regions.
 */
#include <errno.h>

#include "directory/lease.h"
#include "directory/region.h"
#include "kept_regions.h"
#include "util/clock.h"

/* A process writes its slot before it asks the keeper; a slow one must not count as ended. After a
 * keeper's death, a process that was about to open a region may have opened it within this time. */
#define GRACE GPS_SECOND

struct census {
    struct kept_regions *list;
    unsigned others;
};

static void count_slot(const struct gps_owner *holder, const struct gps_slot *slot,
                       struct kept_region *kept) {
    if (slot->via == GPS_VIA_CREATOR && gps_owner_equal(holder, &kept->record.creator))
        kept->creator_holds = true;
    else if (slot->state == GPS_SLOT_INTENT)
        kept->intents++;
    else
        kept->users++;
}

static bool count_process(void *arg, const struct gps_proc *proc) {
    struct census *census = arg;
    if (!proc->alive || gps_owner_equal(&proc->header.owner, &census->list->self))
        return true;
    census->others++;
    for (unsigned i = 0; i < proc->slot_count; i++) {
        const struct gps_slot *slot = &proc->slots[i];
        struct kept_region *kept =
            slot->via == GPS_VIA_EVENT ? NULL : kept_regions_find(census->list, &slot->region);
        if (kept)
            count_slot(&proc->header.owner, slot, kept);
    }
    return true;
}

static void sooner(uint64_t *next, uint64_t when) {
    if (when < *next)
        *next = when;
}

/* Within its grace a live creator without a slot still has the region. */
static bool creator_has(const struct kept_regions *list, const struct kept_region *kept,
                        uint64_t now, uint64_t *next) {
    if (kept->creator_holds)
        return true;
    if (now - kept->since >= GRACE ||
        gps_lease_probe(list->store, &kept->record.creator) != GPS_ALIVE)
        return false;
    sooner(next, kept->since + GRACE);
    return true;
}

/* Whether a process can deposit the descriptor (again). */
static bool can_be_deposited(const struct kept_region *kept, uint64_t now, uint64_t *next) {
    if (kept->descriptor >= 0 || kept->creator_holds || kept->users > 0)
        return true;
    sooner(next, kept->since + GRACE);
    return kept->intents > 0 && now - kept->since < GRACE;
}

static bool is_to_be_kept(const struct kept_regions *list, struct kept_region *kept, uint64_t now,
                          uint64_t *next) {
    const struct gps_region_record *record = &kept->record;
    bool creator = creator_has(list, kept, now, next);
    bool held = creator || kept->users + kept->intents > 0;
    if (!can_be_deposited(kept, now, next))
        return false;
    if (record->status.state == GPS_STATE_WRITING && (record->flags & GPS_REGION_UPLOAD) != 0 &&
        !creator)
        return false; /* no process can complete it */
    if (held || kept->held)
        kept->last_held = now;
    kept->held = held;
    switch (record->keep) {
    case GPS_KEEP_OWNER:
        return creator;
    case GPS_KEEP_USERS:
        return held;
    case GPS_KEEP_FOR:
        if (!held && now - kept->last_held < record->keep_for)
            sooner(next, kept->last_held + record->keep_for);
        return held || now - kept->last_held < record->keep_for;
    default:
        return true;
    }
}

/* A region that could not be published when it was adopted: there may be room now. */
static void publish(const struct kept_regions *list, struct kept_region *kept) {
    if (!kept->published)
        kept->published = gps_region_publish(list->store, &kept->record) == 0;
}

int kept_regions_sweep(struct kept_regions *list, uint64_t now, uint64_t *next, unsigned *others) {
    struct census census = {.list = list};
    for (size_t i = 0; i < list->count; i++) {
        list->items[i]->creator_holds = false;
        list->items[i]->users = list->items[i]->intents = 0;
    }
    int status = gps_proc_each(list->store, count_process, &census);
    if (status != 0)
        return status;
    for (size_t i = list->count; i-- > 0;) {
        if (is_to_be_kept(list, list->items[i], now, next))
            publish(list, list->items[i]);
        else
            kept_regions_drop(list, list->items[i]);
    }
    *others = census.others;
    return 0;
}
