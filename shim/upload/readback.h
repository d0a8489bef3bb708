/*
 * readback.h - the hashes of bytes that are read piece by piece into a small stage.
 *
 * While the caller reads the next piece threads hash those before it (worker_pool.h). No state.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/region.h"

#define GPS_READBACK_PIECE (8 * GPS_HASH_CHUNK)
#define GPS_READBACK_STAGE (4 * GPS_READBACK_PIECE) /* how large a stage must be */

struct gps_readback {
    /* Brings `size` bytes from offset `at` to `to`; by the caller's thread. */
    bool (*read)(void *arg, void *to, uint64_t at, uint64_t size);
    void *arg;
    uint8_t *stage;
    uint64_t size;
    uint64_t *hashes; /* gps_hashes_count(size) */
};

/* False: a read failed. */
bool gps_readback_hash(const struct gps_readback *readback);
