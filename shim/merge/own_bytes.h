/*
 * own_bytes.h - how much of the memory that merge rules took is this process's own, and why.
 *
 * A slot for each GPU says how much is not merged (GPS_VIA_OWN), and one for each reason on each
 * GPU how much of that has it (GPS_VIA_PRIVATE). The reason follows from the block's state, its
 * area, and when it changed.
 */
#pragma once

#include <stdint.h>

/* Publishes what has changed, if it is due. In the merger's thread, often while it merges. */
void gps_own_bytes_turn(void);

/* From now on the bytes of each reason, of all GPUs, stand there, too, as they were when there was
 * any memory of merge rules last; GPS_PRIVATE_COUNT of them. Once, before the first. */
void gps_own_bytes_keep(uint64_t *bytes);
void gps_own_bytes_end(void); /* the process ends: counts once more for gps_own_bytes_keep */
