/*
 * kept_regions.c - the list of kept regions: finding, publishing, adopting, dropping, sweeping.
 *
 * A sorted array of pointers: ids are hashes, so a search is a few steps, and ten thousand regions
 * move 80 KB when one more comes.
 */
#include "kept_regions.h"

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

/* The index at which the region is, or belongs. */
static size_t position(const struct kept_regions *list, const struct gps_id *id) {
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memcmp(&list->items[middle]->record.id, id, sizeof(*id)) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct kept_region *kept_regions_find(const struct kept_regions *list, const struct gps_id *id) {
    size_t at = position(list, id);
    if (at == list->count || !gps_id_equal(&list->items[at]->record.id, id))
        return NULL;
    return list->items[at];
}

static bool reserve(struct kept_regions *list) {
    if (list->count < list->capacity)
        return true;
    size_t capacity = list->capacity > 0 ? 2 * list->capacity : 16;
    struct kept_region **items = realloc(list->items, capacity * sizeof(*items));
    if (!items)
        return false;
    list->items = items;
    list->capacity = capacity;
    return true;
}

static struct kept_region *insert(struct kept_regions *list, const struct kept_region *from) {
    if (!reserve(list))
        return NULL;
    struct kept_region *kept = malloc(sizeof(*kept));
    if (!kept)
        return NULL;
    *kept = *from;
    size_t at = position(list, &kept->record.id);
    memmove(&list->items[at + 1], &list->items[at], (list->count - at) * sizeof(*list->items));
    list->items[at] = kept;
    list->count++;
    return kept;
}

static void forget(struct kept_regions *list, struct kept_region *kept) {
    size_t at = position(list, &kept->record.id);
    memmove(&list->items[at], &list->items[at + 1], (--list->count - at) * sizeof(*list->items));
    free(kept);
}

int kept_regions_add(struct kept_regions *list, const struct gps_region_record *record,
                     int descriptor, uint64_t now) {
    struct kept_region made = {.record = *record,
                               .descriptor = descriptor,
                               .since = now,
                               .last_held = now,
                               .held = true,
                               .published = true};
    if (list->count >= list->max)
        return -EMFILE;
    struct kept_region *kept = insert(list, &made);
    if (!kept)
        return -ENOMEM;
    int status = gps_region_publish(list->store, record);
    if (status != 0)
        forget(list, kept);
    /* -EEXIST would say that we have it. */
    return status == -EEXIST ? -EBUSY : status;
}

/* --- adopting --- */

struct adoption {
    struct kept_regions *list;
    uint64_t now;
    int status;
};

static bool adopt(void *arg, const struct gps_region_record *record, int status, const char *why) {
    struct adoption *adoption = arg;
    struct kept_regions *list = adoption->list;
    struct kept_region made = {
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
    if (list->count < list->max && !kept_regions_find(list, &record->id) && !insert(list, &made))
        adoption->status = -ENOMEM;
    return adoption->status == 0;
}

int kept_regions_adopt(struct kept_regions *list, uint64_t now) {
    struct adoption adoption = {.list = list, .now = now};
    int status = gps_region_each(list->store, adopt, &adoption);
    return status != 0 ? status : adoption.status;
}

/* --- dropping --- */

void kept_regions_drop(struct kept_regions *list, struct kept_region *kept) {
    const struct gps_region_record *record = &kept->record;
    if (record->name[0] != 0)
        gps_name_release(list->store, record->name, &list->self, &record->id);
    gps_region_remove(list->store, &record->id);
    if (kept->descriptor >= 0)
        close(kept->descriptor);
    forget(list, kept);
}

void kept_regions_drop_all(struct kept_regions *list) {
    while (list->count > 0)
        kept_regions_drop(list, list->items[list->count - 1]);
    free(list->items);
    list->items = NULL;
    list->capacity = 0;
}

/* --- sweeping: one pass over procs/ serves all regions --- */

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
            gps_slot_has_region(slot) ? kept_regions_find(census->list, &slot->region) : NULL;
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
