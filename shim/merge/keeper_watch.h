/*
 * keeper_watch.h - what others are told of this process's blocks, again and again.
 *
 * A new keeper gets the blocks that this process has merged. As with other regions
 * (vmm/vmm_region.h), the descriptors of memory that was created here are exported again, and those
 * of other processes' memory were parked.
 *
 * A slot for each GPU says how much of the memory there is not merged (GPS_VIA_OWN).
 */
#pragma once

/* Reports once (store-unavailable) that the directory was removed: blocks that are merged stay so,
 * but processes that start later merge among themselves. Finds out whether there is another keeper
 * than before, and publishes what has changed, at most once a second. It is called in the merger's
 * thread. */
void gps_keeper_watch_turn(void);
