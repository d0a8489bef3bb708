/*
 * shared_memory.h - evicts the memory that this process shares, and restores it.
 *
 * That is memory of cuMemCreate that the keeper holds: regions with backing = vmm that other
 * processes made or this one, and merged blocks. The keeper confirms that it has each of them
 * before it is evicted. Addresses stay reserved, and slots stay in the directory.
 *
 * Called by the thread of suspension.c alone, inside a scope for driver calls, without a lock,
 * while the calls of the program wait.
 */
#pragma once

#include <stdint.h>

#include "gpushare/region.h"
#include "util/text.h"

/* Whether the keeper has all of it. False, and why, and what to do. */
bool gps_shared_memory_confirm(struct gps_text *why);
/* *bytes: the evicted bytes. False, and why: some memory is evicted, and some not. */
bool gps_shared_memory_evict(uint64_t *bytes, struct gps_text *why);

enum gps_taken {
    GPS_TAKEN,       /* all of it is there again */
    GPS_TAKEN_LATER, /* some of it can't be had just now */
    GPS_TAKEN_LOST,  /* some of it is gone for good */
};
/* `keep` as in offload.h. */
enum gps_taken gps_shared_memory_restore(uint64_t keep, struct gps_text *why);

/* --- the one list of refusals --- */

/* Why the process cannot evict the memory that it shares. A way of sharing that is added to the
 * library gets a row in the list, unless it can be undone here. */

/* Adds the first obstacle, and what to do. False: there is none. In a gps_scope, without a lock. */
bool gps_obstacle_find(struct gps_text *why);
