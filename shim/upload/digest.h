/*
 * digest.h - the hashes of a region's chunks (gps_region_hashes), made and compared.
 *
 * Several threads do what is large (worker_pool.h). Memory that turns out not to be
 * readable (a bad pointer, a mapping behind the end of its file) is an answer, not a crash, where
 * the kernel can tell (MADV_POPULATE_READ, 5.14). No state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushare/region.h"

/* The hash of one chunk, which begins at `bytes`; the last of a region may be shorter. They must be
 * readable. */
uint64_t gps_digest_chunk(const void *bytes, uint64_t length);
uint64_t gps_digest_chunk_avx2(const void *bytes, uint64_t length); /* where the processor has it */

#define GPS_DIGEST_EQUAL      SIZE_MAX
#define GPS_DIGEST_UNREADABLE (SIZE_MAX - 1)

/* The first chunk whose hash is not the one expected, or one of the above. */
size_t gps_digest_compare(const void *bytes, uint64_t size, const uint64_t *expected);

/* Whether bytes can be read, as far as the kernel tells; their pages are then there. */
bool gps_digest_readable(const void *bytes, uint64_t size);

#define GPS_DIGEST_PIECE (8 * GPS_HASH_CHUNK)
#define GPS_DIGEST_STAGE (4 * GPS_DIGEST_PIECE) /* how large a stage must be */

/* Brings `size` bytes from offset `at` to `to`; by the caller's thread. */
typedef bool gps_digest_read_fn(void *arg, void *to, uint64_t at, uint64_t size);

/* The hashes of `size` bytes that are read piece by piece into a stage: while the caller reads the
 * next piece, threads hash those before it. False: a read failed. */
bool gps_digest_read(gps_digest_read_fn *read, void *arg, uint8_t *stage, uint64_t size,
                     uint64_t *hashes);
