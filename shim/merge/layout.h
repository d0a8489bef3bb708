/*
 * layout.h - the blocks of allocations in which an allocator pools tensors.
 *
 * Tensors lie in such an allocation in the order in which they come, which differs between
 * processes that load by several threads. A block that is cut by the size of the allocation alone
 * then holds the end of one tensor and the beginning of another. So a copy from the host of 4 MiB
 * at least, in an allocation of up to 64 MiB, counts as a tensor, and blocks begin and end where it
 * does. Blocks without memory are cut anew at once; others are when all blocks concerned are
 * frozen.
 */
#pragma once

#include "area.h"

#define GPS_MERGE_TENSOR (2 * GPS_MERGE_SMALL)

/* Blocks that are cut otherwise than tensors lie, between two places at which both agree. */
struct gps_relayout {
    uint64_t serial, pointer; /* of the area; pointer 0: at first */
    uint64_t copied;          /* when the blocks to be had were */
    unsigned first, end;      /* the blocks that are there */
    unsigned count;
    struct gps_block wanted[GPS_MERGE_POOL / GPS_MERGE_SMALL];
};

/* A copy from the host begins. With the lock. */
void gps_layout_note(struct gps_area *area, uint64_t address, uint64_t size);
/* Cuts UNBACKED blocks anew. With gps_swap_lock and the lock: others move in the array. */
void gps_layout_fit(struct gps_area *area);

/* Whether a frozen block should not be merged as yet: it will be cut anew. With the lock. */
bool gps_layout_holds(const struct gps_area *area, const struct gps_block *block);

/* The next relayout that is frozen, at most one of each area; `only` is an area's serial, 0: any.
 * Then, inside a scope: copies of its blocks, with gps_swap_lock; behind the closed gate, with both
 * locks: takes their place, if nothing was written meanwhile; and what is left of it ends. */
bool gps_layout_next(uint64_t only, struct gps_relayout *relayout);
bool gps_layout_copy(struct gps_relayout *relayout);
void gps_layout_exchange(struct gps_relayout *relayout);
void gps_layout_end(struct gps_relayout *relayout);
