/*
 * merged_sum.h - counts bytes that are merged and unmerged, and writes them to the event log.
 *
 * Each block is counted, from any thread and under any lock. gps_merged_sum_log writes the sums
 * since the last time as one event, after each swap or once a second.
 */
#pragma once

#include <stdint.h>

/* `saved`: the bytes that another process held already, so that this process freed its own. */
void gps_merged_sum_merged(uint64_t bytes, uint64_t saved);
/* The program wrote into the bytes, or freed them. */
void gps_merged_sum_unmerged(uint64_t bytes);

/* From now on the most bytes that are merged at a time stand there, too. Once, before the first. */
void gps_merged_sum_keep(uint64_t *most);

void gps_merged_sum_log(void); /* inside a gps_scope */
