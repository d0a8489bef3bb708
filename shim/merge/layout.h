/*
 * layout.h - the blocks of allocations in which engines put several tensors.
 *
 * Tensors lie in such an allocation in the order in which they come, which differs between
 * processes that load by several threads. A block that is cut by the size of the allocation alone
 * then holds the end of one tensor and the beginning of another. So a copy from the host of 4 MiB
 * at least counts as a tensor. Blocks begin with its first whole 2 MiB and end with the last ones;
 * the 2 MiB that it shares with its neighbours are blocks of their own. So the tensor's blocks are
 * found wherever it lies, at the same distance from a multiple of 2 MiB.
 *
 * Blocks that are not mapped yet are cut anew when a copy begins, as far as it touches them. Mapped
 * blocks are cut anew when they are frozen, some at a time. Both have memory twice for a moment;
 * where there is no room for that they stay as they are.
 */
#pragma once

#include "area.h"

#define GPS_MERGE_TENSOR (2 * GPS_MERGE_SMALL)
#define GPS_MERGE_WINDOW (UINT64_C(256) << 20) /* cut anew at a time, at most */

/* A copy from the host begins. With the lock, in the area's context: blocks may move in it. */
void gps_layout_note(struct gps_area *area, uint64_t address, uint64_t size);

/* Whether a frozen block should not be merged as yet: it will be cut anew. With the lock. */
bool gps_layout_holds(const struct gps_area *area, const struct gps_block *block);

/* The next relayout of frozen blocks, or (not `again`) the first; `only` is an area's serial, 0:
 * any. Then, inside a scope: copies of its blocks, with gps_swap_lock; behind the closed gate, with
 * both locks: takes their place, if nothing was written meanwhile; and what is left of it ends,
 * with gps_swap_lock. In the merger's thread. */
bool gps_layout_next(uint64_t only, bool again);
bool gps_layout_copy(void);
void gps_layout_exchange(void);
void gps_layout_end(void);
