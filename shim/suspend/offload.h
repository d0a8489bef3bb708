/*
 * offload.h - merged blocks that only suspended processes have leave the GPU: the keeper has their
 * bytes in main memory, once for all (gpushare/keeper.h, GPS_KEEPER_OFFLOAD).
 *
 * The last process that evicts a block brings its bytes out, and the first that comes back brings
 * them in for all. The bytes of a block never change, so those that the keeper still has are not
 * copied again. A block that cannot leave stays: nothing here makes a suspension fail.
 *
 * By the thread of suspension.c alone, inside a scope for driver calls, without a lock, while the
 * calls of the program wait.
 */
#pragma once

#include "shared_memory.h"

/* Called before the process evicts the blocks. Returns the bytes that then leave the GPU. */
uint64_t gps_offload(void);
/* Brings in the evicted blocks that are on no GPU. `keep`: how many bytes the keeper may keep in
 * main memory then; UINT64_MAX: a quarter of the memory left there. */
enum gps_taken gps_reload(uint64_t keep, struct gps_text *why);
