/*
 * region_list.h - the regions that this keeper holds: their records and descriptors.
 *
 * The list owns both. A region in it is published with the keeper as its owner, or will be when
 * there is room again. When a region leaves the list its record and name are removed, and its
 * descriptor is closed.
 */
#pragma once

#include "kept_region.h"

/* Makes a time an earlier one. */
static inline void sooner(uint64_t *time, uint64_t other) {
    if (other < *time)
        *time = other;
}

/* Makes the table, for `max` regions or as many as there is memory for. 0 or -errno. */
int region_list_begin(struct region_list *list);
/* After the death of the keeper that served: finds its regions, and finishes the ends it began. */
void region_list_recover(struct region_list *list);

struct keeper_region *region_list_find(const struct region_list *list, const struct gps_id *id);

/* Publishes the region as ours. The list takes over `descriptor` on success. 0; -EMFILE, -ENOMEM,
 * or the error of gps_region_publish. */
int region_list_add(struct region_list *list, const struct gps_region_record *record,
                    int descriptor, uint64_t now);

/* Takes over the records of dead keepers. Call it as the only keeper, after gps_store_gc has
 * removed the regions that no process holds. 0 or -errno; -EAGAIN: a record's owner is still alive.
 * With `inherits`, finds the records of the living keeper whose name is `self`, which is about to
 * be replaced. -EMFILE: they are more than this process can hold. */
int region_list_adopt(struct region_list *list, uint64_t now, bool inherits);
/* That keeper has been replaced: regions that it dropped or retired meanwhile are so here, too. */
void region_list_settle(struct region_list *list);

/* Gives the region the descriptor that it lacks; the list takes it over. */
void region_list_give(struct region_list *list, struct keeper_region *region, int descriptor);
/* Whether the sender may give it: a block of equal bytes may come from any process. */
bool region_list_takes(const struct keeper_region *region, const struct gps_owner *sender);
/* Whether the region lacks its descriptor, and its creator will not bring it. */
bool region_list_lost(const struct keeper_region *region, uint64_t now);

/* Drop removes the region at once. Retire lets no process open it any more, and removes it after
 * its last holder. End drops it if no process has it open, and else retires it. */
void region_list_drop(struct region_list *list, struct keeper_region *region);
void region_list_retire(struct region_list *list, struct keeper_region *region);
void region_list_end(struct region_list *list, struct keeper_region *region);
/* Counts the holders of each region, and drops regions that are not to be kept any longer. Lowers
 * *next to the time of the next sweep that is needed even if nothing changes. *others: live
 * processes but us. 0 or -errno; then nothing was dropped. */
int region_list_sweep(struct region_list *list, uint64_t now, uint64_t *next, unsigned *others);
/* Drops the merged blocks that no process has open, but not those kept for ever. A process that
 * gets or deposits a block has a slot first, so no grace is needed. 0; -ENOENT: none. */
int region_list_reclaim(struct region_list *list);
