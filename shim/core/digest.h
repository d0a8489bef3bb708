/*
 * digest.h - the hashes of a region's chunks (gps_region_hashes), made and compared.
 *
 * Large pieces are worked on by several threads, which live for the one call, have small stacks and
 * the signal mask of their caller; where none can be had the caller works alone. Memory that turns
 * out not to be readable (a bad pointer, a mapping behind the end of its file) is an answer, not a
 * crash, where the kernel can tell (MADV_POPULATE_READ, 5.14). No state.
 */
#ifndef GPS_DIGEST_H
#define GPS_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpushare/region.h"

/* The hashes of `size` bytes that begin with a chunk; the last chunk may be shorter. False: they
 * are not readable. */
bool gps_digest_make(const void *bytes, uint64_t size, uint64_t *hashes);

#define GPS_DIGEST_EQUAL      SIZE_MAX
#define GPS_DIGEST_UNREADABLE (SIZE_MAX - 1)

/* The first chunk whose hash is not the one expected, or one of the above. */
size_t gps_digest_compare(const void *bytes, uint64_t size, const uint64_t *expected);

/* Whether bytes can be read, as far as the kernel tells; their pages are then there. */
bool gps_digest_readable(const void *bytes, uint64_t size);

#endif
