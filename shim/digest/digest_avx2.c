/*
 * digest_avx2.c - the hash of a chunk with AVX2, which is twice as fast as with SSE2.
 *
 * Only this file is compiled with -mavx2 (Makefile), so nothing in it may run on a processor
 * without AVX2; digest.c checks that first. The hash has the same value either way.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "digest.h"

struct gps_hash gps_digest_chunk_avx2(const void *bytes, uint64_t length, const uint8_t *secret) {
    const XXH128_hash_t hash = XXH3_128bits_withSecret(bytes, length, secret, GPS_SECRET_BYTES);
    return (struct gps_hash){hash.low64, hash.high64};
}
