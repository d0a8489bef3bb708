/*
 * merger.h - finds blocks whose bytes do not change, and merges them.
 *
 * A background thread hashes the private blocks of all areas now and then. It freezes blocks whose
 * hash has been the same for their rule's `quiet` and into which no copy is under way, many at a
 * time in one swap (swap.h). A second swap puts shared blocks in their place (candidate.h). A swap
 * takes at most GPS_SWAP_PAUSE. What was prepared for it and has no time, or no idle device, is
 * swapped at the next moments. While the device does not become idle, attempts become rarer.
 * Blocks that copies have filled only in part wait until all other blocks are merged; if a kernel
 * writes one of them then, exclusion.h knows which one. The thread waits for no other process but
 * the keeper: that wait takes 0.2 s, once. No lock is held in that wait.
 *
 * Any thread may call these functions, inside a gps_scope and without a lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* There is an area: starts the thread, if it does not run. */
void gps_merger_start(void);
/* Something can be merged soon: wakes the thread. */
void gps_merger_wake(void);
/* Starts the thread if it could not be started before. It needs no scope. */
void gps_merger_retry(void);
/* Waits until the thread has merged what is ready in one area, for a second at most: a copy has
 * filled many blocks. The program's signals are let in meanwhile. */
void gps_merger_run(uint64_t serial);

/* An allocation failed. While blocks are cut anew they have memory twice: this waits until they
 * have it once. True: the allocation may have failed for that reason. It needs no scope. */
bool gps_merger_reclaim(void);

/* The process is suspended: the thread gives up what it has prepared, and does nothing more until
 * gps_merger_go_on. False: it still works after `timeout` ns. Call that in either case. */
bool gps_merger_hold(uint64_t timeout);
void gps_merger_go_on(void);

void gps_merger_stop(void); /* the process ends: the driver is touched no more */

/* --- keeper_watch.c: this process's blocks, for new keepers --- */

/* A new keeper, after keeper and stand-by have died, gets the blocks that were created here again,
 * as it does other regions (vmm/vmm_region.h). While a process is suspended the keeper also gets
 * blocks that no other process gives it: a copy of the block that another process had created,
 * which is mapped here in its place when the device is idle. */

/* Reports once (store-unavailable) that the directory was removed: blocks that are merged stay so,
 * but processes that start later merge among themselves. Finds out whether there is another keeper
 * than before. It is called in the merger's thread. */
void gps_keeper_watch_turn(const _Atomic bool *stop); /* set: the driver is touched no more */
