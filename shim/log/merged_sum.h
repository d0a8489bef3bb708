/*
 * merged_sum.h - counts bytes that are merged and unmerged, and writes them to the event log.
 *
 * Blocks are counted one by one, from any thread and under any lock; events are sums, one a swap or
 * second, and not one a block.
 */
#pragma once

#include <stdint.h>

/* `saved`: so much of it was there already, and this process's own was given back. */
void gps_merged_sum_merged(uint64_t bytes, uint64_t saved);
/* Written by the program, or freed. */
void gps_merged_sum_unmerged(uint64_t bytes);

void gps_merged_sum_log(void);   /* inside a gps_scope */
void gps_merged_sum_reset(void); /* in a forked child */
