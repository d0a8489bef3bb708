/*
 * merger.h - finds blocks whose bytes do not change, and merges them.
 *
 * A background thread looks at the private blocks of all areas now and then. Blocks that have kept
 * their hash for their rule's `quiet`, and into which no copy is under way, are frozen many at a
 * time, in one swap (swap.h); a second one puts shared blocks in their place (candidate.h). A swap
 * takes at most GPS_MERGE_PAUSE. While the device does not become idle the attempts become rarer
 * and more patient. Blocks that copies filled in part only wait until all others are merged: should
 * one of them be written by a kernel, it is known which (exclusion.h). Nothing waits for another
 * process but the keeper, and for that one 0.2 s and once.
 *
 * Any thread; inside a gps_scope without a lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define GPS_MERGE_PAUSE UINT64_C(1000000) /* ns */

/* There is an area, or something to be merged soon: starts the thread, and wakes it. */
void gps_merger_wake(void);
/* Waits until the thread has merged what is ready in one area, for a second at most: a copy has
 * filled many blocks. The program's signals are let in meanwhile. */
void gps_merger_run(uint64_t serial);

/* An allocation failed: waits until blocks that are cut anew have memory but once. True: it may be
 * that it failed for that. Needs no scope. */
bool gps_merger_relieve(void);

void gps_merger_stop(void);  /* the process ends: the driver is touched no more */
void gps_merger_reset(void); /* in a forked child */
