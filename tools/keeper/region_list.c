/* region_list.c - the list of regions: finding, publishing, adopting, dropping, sweeping. */
#include "region_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "directory/lease.h"
#include "directory/name.h"
#include "directory/region.h"
#include "util/clock.h"

/* A process writes its slot before it asks the keeper; a slow one must not count as ended. After a
 * keeper's death, a process that was about to open a region may have opened it within this time. */
#define GRACE GPS_SECOND

struct keeper_region *region_list_find(const struct region_list *list, const struct gps_id *id) {
    struct keeper_region *region;
    HASH_FIND(hh, list->first, id, sizeof(*id), region);
    return region;
}

static struct keeper_region *insert(struct region_list *list, const struct keeper_region *from) {
    struct keeper_region *region = malloc(sizeof(*region));
    if (!region)
        return NULL;
    *region = *from;
    HASH_ADD(hh, list->first, record.id, sizeof(region->record.id), region);
    if (!region->hh.tbl) {
        free(region);
        return NULL;
    }
    return region;
}

static void forget(struct region_list *list, struct keeper_region *region) {
    HASH_DELETE(hh, list->first, region);
    free(region);
}

int region_list_add(struct region_list *list, const struct gps_region_record *record,
                    int descriptor, uint64_t now) {
    struct keeper_region made = {.record = *record,
                                 .descriptor = descriptor,
                                 .since = now,
                                 .last_held = now,
                                 .held = true,
                                 .published = true};
    if (region_list_count(list) >= list->max)
        return -EMFILE;
    struct keeper_region *region = insert(list, &made);
    if (!region)
        return -ENOMEM;
    int status = gps_region_publish(list->store, record);
    if (status != 0)
        forget(list, region);
    /* -EEXIST would say that we have it. */
    return status == -EEXIST ? -EBUSY : status;
}

/* --- adopting --- */

struct adoption {
    struct region_list *list;
    uint64_t now;
    int status;
};

static bool adopt(void *arg, const struct gps_region_record *record, int status, const char *why) {
    struct adoption *adoption = arg;
    struct region_list *list = adoption->list;
    struct keeper_region made = {
        .descriptor = -1, .since = adoption->now, .last_held = adoption->now, .held = true};
    (void)why;
    if (status != 0 || record->backing != GPS_BACKING_VMM ||
        gps_owner_equal(&record->owner, &list->self))
        return true;
    if (gps_lease_probe(list->store, &record->owner) == GPS_ALIVE) {
        adoption->status = -EAGAIN;
        return false;
    }
    made.record = *record;
    made.record.owner = list->self;
    gps_record_seal(&made.record);
    if (region_list_count(list) < list->max && !region_list_find(list, &record->id) &&
        !insert(list, &made))
        adoption->status = -ENOMEM;
    return adoption->status == 0;
}

int region_list_adopt(struct region_list *list, uint64_t now) {
    struct adoption adoption = {.list = list, .now = now};
    int status = gps_region_each(list->store, adopt, &adoption);
    return status != 0 ? status : adoption.status;
}

/* --- dropping --- */

static void withdraw(struct region_list *list, struct keeper_region *region) {
    const struct gps_region_record *record = &region->record;
    if (record->name[0] != 0)
        gps_name_release(list->store, record->name, &list->self, &record->id);
    if (region->descriptor >= 0)
        close(region->descriptor);
    region->descriptor = -1;
}

void region_list_drop(struct region_list *list, struct keeper_region *region) {
    withdraw(list, region);
    gps_region_remove(list->store, &region->record.id);
    forget(list, region);
}

bool region_list_retired(const struct keeper_region *region) {
    return region->record.status.state == GPS_STATE_CLOSING;
}

void region_list_retire(struct region_list *list, struct keeper_region *region) {
    withdraw(list, region);
    if (gps_region_set_status(list->store, &region->record, GPS_STATE_CLOSING, 0) != 0)
        region_list_drop(list, region);
}

void region_list_drop_all(struct region_list *list) {
    while (list->first)
        region_list_drop(list, list->first);
}

/* --- sweeping: one pass over procs/ serves all regions --- */

struct census {
    struct region_list *list;
    unsigned others;
};

static void count_slot(const struct gps_owner *holder, const struct gps_slot *slot,
                       struct keeper_region *region) {
    if (slot->via == GPS_VIA_CREATOR && gps_owner_equal(holder, &region->record.creator))
        region->creator_holds = true;
    else if (slot->state == GPS_SLOT_INTENT)
        region->intents++;
    else
        region->users++;
}

static bool count_process(void *arg, const struct gps_proc *proc) {
    struct census *census = arg;
    if (!proc->alive || gps_owner_equal(&proc->header.owner, &census->list->self))
        return true;
    census->others++;
    for (struct keeper_region *region = census->list->first; region && proc->unknown;
         region = region->hh.next)
        region->creator_holds = true; /* it may have any, and be its creator */
    for (unsigned i = 0; i < proc->slot_count; i++) {
        const struct gps_slot *slot = &proc->slots[i];
        struct keeper_region *region =
            gps_slot_has_region(slot) ? region_list_find(census->list, &slot->region) : NULL;
        if (region)
            count_slot(&proc->header.owner, slot, region);
    }
    return true;
}

/* Within its grace a live creator without a slot still has the region. */
static bool creator_has(const struct region_list *list, const struct keeper_region *region,
                        uint64_t now, uint64_t *next) {
    if (region->creator_holds)
        return true;
    if (now - region->since >= GRACE ||
        gps_lease_probe(list->store, &region->record.creator) != GPS_ALIVE)
        return false;
    sooner(next, region->since + GRACE);
    return true;
}

/* Whether a process can deposit the descriptor (again). */
static bool can_be_deposited(const struct keeper_region *region, uint64_t now, uint64_t *next) {
    if (region->descriptor >= 0 || region->creator_holds || region->users > 0)
        return true;
    sooner(next, region->since + GRACE);
    return region->intents > 0 && now - region->since < GRACE;
}

static bool is_retained(const struct region_list *list, struct keeper_region *region, uint64_t now,
                        uint64_t *next) {
    const struct gps_region_record *record = &region->record;
    bool creator = creator_has(list, region, now, next);
    bool held = creator || region->users + region->intents > 0;
    if (region_list_retired(region))
        return held;
    if (!can_be_deposited(region, now, next))
        return false;
    if (held || region->held)
        region->last_held = now;
    region->held = held;
    switch (record->keep) {
    case GPS_KEEP_OWNER:
        return creator;
    case GPS_KEEP_USERS:
        return held;
    case GPS_KEEP_FOR:
        if (!held && now - region->last_held < record->keep_for)
            sooner(next, region->last_held + record->keep_for);
        return held || now - region->last_held < record->keep_for;
    default:
        return true;
    }
}

/* A region that could not be published when it was adopted: there may be room now. */
static void publish(const struct region_list *list, struct keeper_region *region) {
    if (!region->published)
        region->published = gps_region_publish(list->store, &region->record) == 0;
}

int region_list_sweep(struct region_list *list, uint64_t now, uint64_t *next, unsigned *others) {
    struct census census = {.list = list};
    struct keeper_region *region, *following;
    HASH_ITER(hh, list->first, region, following) {
        region->creator_holds = false;
        region->users = region->intents = 0;
    }
    int status = gps_proc_each(list->store, count_process, &census);
    if (status != 0)
        return status;
    HASH_ITER(hh, list->first, region, following) {
        if (is_retained(list, region, now, next))
            publish(list, region);
        else
            region_list_drop(list, region);
    }
    *others = census.others;
    return 0;
}
