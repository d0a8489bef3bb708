/*
 * kept_regions.h - the regions that this keeper keeps: their records and descriptors.
 *
 * Owns both: what is in the list is published with the keeper as its owner (or will be, when there
 * is room again), what leaves it is removed with its name, and its descriptor closed. One thread.
 */
#ifndef KEPT_REGIONS_H
#define KEPT_REGIONS_H

#include "directory/store.h"

struct kept_region {
    struct gps_region_record record;
    int descriptor;     /* -1: adopted, and not deposited again yet */
    bool published;     /* by us */
    uint64_t since;     /* when it came to us (CLOCK_MONOTONIC) */
    uint64_t last_held; /* GPS_KEEP_FOR: when somebody last held it */
    bool held;          /* by anybody, as of the last sweep */
    bool creator_holds; /* the same, like the next two */
    unsigned users;     /* others that have it open */
    unsigned intents;   /* and that are about to */
};

struct kept_regions {
    const struct gps_store *store;
    struct gps_owner self;
    struct kept_region **items; /* by id */
    size_t count, room;
    size_t max; /* as many descriptors as there are for them */
};

struct kept_region *kept_regions_find(const struct kept_regions *list, const struct gps_id *id);

/* Publishes it first, as ours. `descriptor` becomes the list's on success. 0; -EMFILE, -ENOMEM, or
 * what gps_region_publish says. */
int kept_regions_add(struct kept_regions *list, const struct gps_region_record *record,
                     int descriptor, uint64_t now);

/* Takes over the records of keepers that died. Ours is the only keeper, and the regions that nobody
 * holds are gone by now (gps_store_gc). 0 or -errno; -EAGAIN: its owner has not quite died yet. */
int kept_regions_adopt(struct kept_regions *list, uint64_t now);

void kept_regions_drop(struct kept_regions *list, struct kept_region *kept);
void kept_regions_drop_all(struct kept_regions *list);

/* Looks who holds what, and drops what is not to be kept any longer. *next: when to look again even
 * if nothing changes, unless it is earlier than that already. *others: live processes but us. 0 or
 * -errno; then nothing was dropped. */
int kept_regions_sweep(struct kept_regions *list, uint64_t now, uint64_t *next, unsigned *others);

#endif
