/*
 * digest.h - the hash of a block's bytes, as the GPU and the processor both make it.
 *
 * XXH3 (128 bits) of every 16 KiB, of the 64 hashes of every 1 MiB, and of those. A kernel makes
 * the first step (driver_ops.h: digest), the others are little. On the processor several threads do
 * what is large (worker_pool.h). Sizes are multiples of 1 MiB. No state.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define GPS_DIGEST_MOST   (UINT64_C(32) << 20) /* the largest block */
#define GPS_DIGEST_CHUNK  (UINT64_C(16) << 10)
#define GPS_DIGEST_PIECE  (UINT64_C(1) << 20)
#define GPS_DIGEST_CHUNKS (GPS_DIGEST_MOST / GPS_DIGEST_CHUNK)

struct gps_hash {
    uint64_t low, high;
};

struct gps_digest {
    struct gps_hash hash;
    struct gps_hash first; /* of its first chunk alone */
};

/* Of a block, by the hashes of its chunks. */
struct gps_digest gps_digest_combine(const struct gps_hash *chunks, uint64_t size);

/* Whether bytes in main memory have the hashes of so many chunks; false also when they cannot be
 * read. */
bool gps_digest_compare(const void *bytes, uint64_t count, const struct gps_hash *expected);
/* The same in two steps: other threads begin to hash while the caller does something else. NULL:
 * there is no memory for that. Without `expected` it ends for nothing. */
struct gps_digest_work *gps_digest_begin(const void *bytes, uint64_t count);
bool gps_digest_end(struct gps_digest_work *work, const struct gps_hash *expected);

/* Whether bytes can be read, as far as the kernel tells; their pages are then there. */
bool gps_digest_readable(const void *bytes, uint64_t size);

struct gps_hash gps_digest_chunk(const void *bytes);
/* The same where the processor has AVX2 (digest_avx2.c). */
struct gps_hash gps_digest_chunk_avx2(const void *bytes, uint64_t length);
