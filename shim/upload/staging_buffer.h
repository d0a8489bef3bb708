/*
 * staging_buffer.h - host memory into which device memory is read back.
 *
 * Owns one stage, mapped when first wanted and kept for the life of the process, and pinned where
 * the driver does that: it reads into pinned memory three times as fast. A thread that finds it
 * taken gets one that is not pinned, for as long as it is used. Forked children do not have it.
 */
#pragma once

#include <stdint.h>

/* GPS_READBACK_STAGE bytes, or NULL. Inside a scope that has entered a context. */
uint8_t *gps_staging_take(void);
void gps_staging_put(uint8_t *stage);

void gps_staging_reset(void); /* in a forked child */
