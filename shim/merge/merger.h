/*
 * merger.h - finds blocks that are equal to shared ones, and swaps them.
 *
 * A background thread hashes the private blocks of all areas now and then. A block whose hash has
 * not changed for its rule's `quiet`, and into which no copy is under way, is merged: mapped to the
 * shared block of these bytes, or, where there is none yet, offered as one. The keeper is asked
 * first, without a lock; then, behind the closed gate and with all streams idle, the bytes are
 * compared once more and the blocks swapped, for at most GPS_MERGE_PAUSE. While the device does not
 * become idle, the patience grows from one to twenty milliseconds, and the pauses between attempts
 * with it. Nothing waits for another process but the keeper, and for that one 0.2 s and once.
 *
 * Any thread; inside a gps_scope without a lock.
 */
#pragma once

#include "area.h"

#define GPS_MERGE_PAUSE (UINT64_C(2) * 1000000) /* ns */

/* There is an area, or something to be merged soon: starts the thread, and wakes it. */
void gps_merger_wake(void);
/* Merges what is ready in one area now, in the calling thread: a copy has filled many blocks. */
void gps_merger_run(uint64_t serial);

/* Keeps the merger from looking at blocks, which would be unmapped under its kernels. */
void gps_merger_lock(void);
void gps_merger_unlock(void);

/* Closes the gate when the device is idle; for whoever takes memory from under a block. With
 * gps_merger_lock. False: it is not idle after `patience`. */
bool gps_merger_begin_swap(uint64_t patience);
void gps_merger_end_swap(void);

void gps_merger_stop(void);  /* the process ends: the driver is touched no more */
void gps_merger_reset(void); /* in a forked child */
