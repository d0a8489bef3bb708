/*
 * keeper_watch.h - what others are told of this process's blocks, again and again.
 *
 * A new keeper, after keeper and stand-by have died, gets the blocks that were created here again,
 * as it does other regions (vmm/vmm_region.h).
 */
#pragma once

/* Reports once (store-unavailable) that the directory was removed: blocks that are merged stay so,
 * but processes that start later merge among themselves. Finds out whether there is another keeper
 * than before. It is called in the merger's thread. */
void gps_keeper_watch_turn(void);
