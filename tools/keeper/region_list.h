/*
 * region_list.h - the regions that this keeper holds: their records and descriptors.
 *
 * The list owns both. A region in it is published with the keeper as its owner, or will be when
 * there is room again. When a region leaves the list its record and name are removed, and its
 * descriptor is closed. One thread calls these functions.
 */
#pragma once

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "directory/store.h"

/* Makes a time an earlier one. */
static inline void sooner(uint64_t *time, uint64_t other) {
    if (other < *time)
        *time = other;
}

struct keeper_region {
    struct gps_region_record record;
    int descriptor;     /* -1: adopted, and not deposited again yet */
    bool published;     /* by us */
    uint64_t since;     /* the time at which we got it (CLOCK_MONOTONIC) */
    uint64_t last_held; /* GPS_KEEP_FOR: the time at which a process last held it */
    /* what the last sweep found: */
    bool held;
    bool creator_holds;
    unsigned users;   /* other processes that have it open */
    unsigned intents; /* processes that are about to open it */
    UT_hash_handle hh;
};

struct region_list {
    const struct gps_store *store;
    struct gps_owner self;
    struct keeper_region *first; /* the head of a hash table, by id */
    size_t max;                  /* the number of descriptors for them */
};

static inline size_t region_list_count(const struct region_list *list) {
    return HASH_COUNT(list->first);
}

struct keeper_region *region_list_find(const struct region_list *list, const struct gps_id *id);

/* Publishes the region as ours. The list takes over `descriptor` on success. 0; -EMFILE, -ENOMEM,
 * or the error of gps_region_publish. */
int region_list_add(struct region_list *list, const struct gps_region_record *record,
                    int descriptor, uint64_t now);

/* Takes over the records of dead keepers. Call it as the only keeper, after gps_store_gc has
 * removed the regions that no process holds. 0 or -errno; -EAGAIN: a record's owner is still alive.
 */
int region_list_adopt(struct region_list *list, uint64_t now);

/* Drop removes the region at once. Retire lets nobody open it any more, and removes it after its
 * last holder. */
void region_list_drop(struct region_list *list, struct keeper_region *region);
void region_list_retire(struct region_list *list, struct keeper_region *region);
bool region_list_retired(const struct keeper_region *region);
void region_list_drop_all(struct region_list *list);

/* Counts the holders of each region, and drops those that are retained no longer. Lowers *next to
 * the time of the next sweep that is needed even if nothing changes. *others: live processes but
 * us. 0 or -errno; then nothing was dropped. */
int region_list_sweep(struct region_list *list, uint64_t now, uint64_t *next, unsigned *others);
