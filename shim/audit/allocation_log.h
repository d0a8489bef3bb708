/*
 * allocation_log.h - each allocation of the process as a line of its log, when that is asked for.
 *
 * For `gpushare run --list-allocations`: option list_allocations, with mode = audit and a log of
 * JSON lines. It lists what rules can choose from, and memory of pools beside it; so not what the
 * 32-bit cuMemAlloc of CUDA 2 allocates. Safe from any thread; off, an allocation costs one branch.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

enum gps_listed { GPS_LISTED_PLAIN, GPS_LISTED_POOL };

extern bool gps_allocation_log_active;

/* At the first CUDA call; also in a forked child. */
void gps_allocation_log_start(const struct gps_options *options);

/* The driver has allocated, and the call is still under way. */
void gps_allocation_log_add(uint64_t pointer, uint64_t size, enum gps_listed kind);
