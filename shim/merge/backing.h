/*
 * backing.h - the memory of an area: blocks that are mapped when work may touch them.
 *
 * Any thread, without a lock unless a comment says otherwise. The codes are the driver's.
 */
#pragma once

#include "area.h"

/* So many bytes more of all areas are unbacked; fewer where it is negative. With the lock. */
void gps_backing_count(int64_t change);
/* Maps all blocks that are unbacked yet, in all areas, because work begins that may touch them. The
 * code is that of areas that the current device reaches. It needs no scope. */
int gps_merge_back_all(void);
/* Maps the unbacked blocks whose memory is made: the driver restores only mapped memory. Blocks
 * that overcommit has not made yet take none. Inside a scope for driver calls, while no call of the
 * program's is under way. */
int gps_merge_back_made(void);
/* A block of a rule with overcommit found no memory. Waits a millisecond, with the program's
 * signals let in, because other processes may merge blocks. True: try again. It waits for a second
 * in all, from *until == 0 on, and then no more until memory was found. In a gps_scope, no lock. */
bool gps_merge_await_memory(uint64_t *until);
/* An UNBACKED block is mapped. With the lock. */
int gps_merge_back(const struct gps_area *area, struct gps_block *block);
/* A SPECULATIVE block becomes private, or is merged. With the lock, and gps_swap_lock. */
int gps_merge_own(const struct gps_area *area, struct gps_block *block);
void gps_merge_share(struct gps_block *block);
/* Merges the blocks that copies have touched all over, if none has after `until`: the bytes that
 * copies leave out lie between tensors. */
void gps_merge_share_touched(struct gps_area *area, uint64_t until);

/* Another device may use the memory of `home`, too. Inside a gps_scope. */
void gps_merge_enable(int home, int accessor);
