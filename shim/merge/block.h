/*
 * block.h - the memory of one block: given, swapped, made private.
 *
 * All functions want the lock of area.h, inside a gps_scope that has entered the area's context.
 * Those that take memory or access from a block that the program may be using (freeze, thaw,
 * replace) are called with the gate closed and the streams idle. The codes are the driver's. A call
 * that fails changes nothing.
 */
#pragma once

#include "area.h"

/* Passes to another state, as GPS_BLOCK_STATES allows. */
void gps_block_set_state(struct gps_block *block, enum gps_block_state state);

/* Makes memory for an UNBACKED block, without mapping it. */
int gps_block_make(const struct gps_area *area, struct gps_block *block);
/* Releases that memory: the block gets another's, or has ended. */
void gps_block_unmake(struct gps_block *block);
/* Whether the current device has so much memory left. False also where that is not known. */
bool gps_block_fits(uint64_t bytes);

/* UNBACKED -> PRIVATE. It can lack memory only if none was made. */
int gps_block_back(const struct gps_area *area, struct gps_block *block);
/* UNBACKED -> SPECULATIVE, with memory that becomes the block's. */
int gps_block_adopt(const struct gps_area *area, struct gps_block *block, uint64_t memory);

/* Gives a SPECULATIVE block a copy of its own, as gps_block_replace. Nothing but copies from the
 * host may touch it yet, and none does: it needs no gate. */
int gps_block_own(const struct gps_area *area, struct gps_block *block);

/* PRIVATE -> FROZEN, and back; both by a swap. */
int gps_block_freeze(const struct gps_area *area, struct gps_block *block);
int gps_block_thaw(const struct gps_area *area, struct gps_block *block);

/* Nothing writes its memory from now on, whatever its state. */
int gps_block_seal(const struct gps_area *area, const struct gps_block *block);

/* New memory with the block's bytes, not mapped; the caller's. */
int gps_block_copy(const struct gps_area *area, const struct gps_block *block, uint64_t *memory);
/* Maps other memory in place of the block's, which is released. The caller sets the state. */
int gps_block_replace(const struct gps_area *area, struct gps_block *block, uint64_t memory,
                      bool writable);

/* Maps the memory of new blocks, read-only, in place of old ones that have the same range and are
 * FROZEN; their memory is released, and the new ones are FROZEN. */
int gps_block_exchange(const struct gps_area *area, const struct gps_block *old, unsigned olds,
                       struct gps_block *blocks, unsigned count);

/* Maps memory for the devices that reach the area's. */
int gps_block_map(const struct gps_area *area, uint64_t pointer, uint64_t size, uint64_t memory,
                  bool writable);
/* Maps memory in the area, without access while the program may not use the area yet; and blocks to
 * their memory, all or none. */
int gps_block_place(const struct gps_area *area, uint64_t pointer, uint64_t size, uint64_t memory,
                    bool writable);
int gps_block_place_all(const struct gps_area *area, const struct gps_block *blocks,
                        unsigned count);
/* Maps memory at any address, to read it or to copy into it. */
int gps_block_view(const struct gps_area *area, uint64_t memory, uint64_t size, bool writable,
                   uint64_t *pointer);
void gps_block_unview(uint64_t pointer, uint64_t size);

/* The allocation ends: unmaps the block. -> UNBACKED */
void gps_block_drop(const struct gps_area *area, struct gps_block *block);
