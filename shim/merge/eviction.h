/*
 * eviction.h - blocks whose memory a suspension evicts and restores: merged and own ones.
 *
 * The addresses stay reserved, and the slots say as before that the process has the blocks, so that
 * the keeper keeps them. All calls of the program and the merger wait meanwhile. Called inside a
 * scope for driver calls, without a lock. The codes are the driver's.
 */
#pragma once

#include "area.h"

struct gps_eviction {
    uint64_t address; /* begin with 0 */
    uint64_t size;
    struct gps_id id; /* of the keeper's block */
    bool evicted;
    bool own; /* created here, and no copy of the keeper's has come in its place */
};

/* The next merged block by address. False: there is no more. */
bool gps_eviction_next(struct gps_eviction *block);

/* Enters the context of the area that an address lies in. */
int gps_eviction_enter(uint64_t address);

/* A descriptor of its memory, the caller's, if it was created here and is not the keeper's. */
int gps_eviction_descriptor(const struct gps_eviction *block, int *descriptor);

/* The bytes of blocks with this process's own memory. It needs no scope for driver calls. */
uint64_t gps_eviction_own_bytes(void);

/* For a block of another process's, of whose memory the driver gives no descriptor, while this
 * process runs. The first makes memory of the same bytes, the caller's, with gps_swap_lock; the
 * second maps it in place of the other, in a stall (gate/swap.h). Then it is as if created here. */
int gps_eviction_copy(const struct gps_eviction *block, uint64_t *memory);
int gps_eviction_replace(const struct gps_eviction *block, uint64_t memory);

int gps_eviction_release(uint64_t address);
/* The descriptor stays the caller's. */
int gps_eviction_restore(uint64_t address, int descriptor);

/* Where the keeper has only the bytes. The first makes memory for the block, which the caller
 * fills; the second seals it and gives a descriptor, the caller's; after the third the block is as
 * if created here, or is evicted as before. */
int gps_eviction_make(uint64_t address);
int gps_eviction_seal(uint64_t address, int *descriptor);
void gps_eviction_made(uint64_t address, bool taken);

/* --- blocks of this process's own --- */

struct gps_eviction_own {
    uint64_t address, size; /* begin with 0 */
    uint64_t context;
    bool evicted;
};

/* The next block of its own by address that it can evict: none of cuMemCreate. False: no more. */
bool gps_eviction_next_own(struct gps_eviction_own *block);
/* Evicts the block. Its bytes are lost. */
int gps_eviction_release_own(uint64_t address);
/* Makes new memory for the block, with the driver's bytes. */
int gps_eviction_make_own(uint64_t address);
