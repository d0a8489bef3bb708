/*
 * offloaded.h - merged blocks that left the GPU because only suspended processes have them: their
 * bytes are in a sealed memfd (GPS_KEEPER_OFFLOAD).
 *
 * The memfd stays for a while after the block is on the GPU again, so that it need not be copied
 * the next time: the bytes of a block never change. Main memory bounds how many stay.
 */
#pragma once

#include "kept_region.h"

/* Takes the block off the GPU. With a valid memfd *bytes becomes -1: the list takes it over. 0 or
 * -errno as in keeper.h. */
int offloaded_begin(struct region_list *list, struct keeper_region *region, int *bytes);
/* The memfd, for a sender that brings the block back by a deposit. 0 or -errno as in keeper.h. */
int offloaded_give(struct region_list *list, struct keeper_region *region,
                   const struct gps_owner *sender, uint64_t now, int *bytes);
/* Takes over a memfd that the replaced keeper has given. */
void offloaded_take(struct region_list *list, struct keeper_region *region, int bytes);
bool offloaded_is(const struct keeper_region *region);

/* Updates the region's record: offloaded or not. */
void offloaded_tell(const struct region_list *list, struct keeper_region *region);
/* Closes the memfds of blocks on the GPU, but keeps `most` bytes, or as many as are allowed. */
void offloaded_trim(struct region_list *list, uint64_t most);
/* The region ends. */
void offloaded_forget(struct region_list *list, struct keeper_region *region);
