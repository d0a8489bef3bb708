/*
 * digest.h - the hash of a block's bytes, as the GPU and the processor both make it.
 *
 * The hash is a tree of three levels of XXH3 (128 bits): every chunk of 16 KiB is hashed, then the
 * 64 hashes of every piece of 1 MiB, then the hashes of all pieces. On the GPU a kernel hashes the
 * chunks (driver_ops.h: digest), and the processor does the small rest. In main memory several
 * threads hash the chunks (worker_pool.h). Sizes are multiples of 1 MiB.
 *
 * The key of XXH3 is the one state: its public one, until gps_digest_use sets that of the directory
 * (directory/secret.h), so that no other user can make bytes which collide. XXH3 with a secret key
 * is no cryptographic hash, but the known attacks need the key.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/region.h"

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

/* Hashes with this key of GPS_SECRET_BYTES now. By one thread, before any hash that is kept. */
void gps_digest_use(const uint8_t *secret);
/* The key in use. */
const uint8_t *gps_digest_secret(void);

/* The digest of a block, from the hashes of its chunks. */
struct gps_digest gps_digest_combine(const struct gps_hash *chunks, uint64_t size);

/* Whether `count` chunks in main memory have these hashes. False also when they cannot be read;
 * `pinned`: they surely can be read. */
bool gps_digest_compare(const void *bytes, uint64_t count, bool pinned,
                        const struct gps_hash *expected);
/* The same in two steps: others hash while the caller does other work. NULL: no memory.
 * gps_digest_end frees the work; with expected == NULL it stops the hashing and returns false. */
struct gps_digest_work *gps_digest_begin(const void *bytes, uint64_t count, bool pinned);
bool gps_digest_end(struct gps_digest_work *work, const struct gps_hash *expected);
/* Ends the work with the digest of all chunks. False: they cannot be read. */
bool gps_digest_finish(struct gps_digest_work *work, struct gps_digest *digest);

/* Whether bytes can be read, by the kernel. Their pages are then faulted in, and they are read
 * where they lie: copying them by process_vm_readv takes up to twice as long. A program that takes
 * the access away meanwhile gets the fault, as it would while the driver reads. If it has a handler
 * of its own for SIGSEGV or SIGBUS, threads of ours read by process_vm_readv all the same. */
bool gps_digest_readable(const void *bytes, uint64_t size);

/* The hash of one chunk. */
struct gps_hash gps_digest_chunk(const void *bytes);
/* The same, only for a processor with AVX2 (digest_avx2.c). */
struct gps_hash gps_digest_chunk_avx2(const void *bytes, uint64_t length, const uint8_t *secret);

/* --- device_digest.c: memory on the GPU --- */

/* Kernels do the work if the library was built with nvcc and the driver accepts them. Otherwise the
 * bytes are copied to main memory piece by piece, which is slower. To be called inside a gps_scope
 * that has entered the memory's context, by one thread at a time (merger.h). The driver's codes. */

/* The hashes of all chunks of the memory. */
int gps_device_hash(uint64_t pointer, uint64_t size, struct gps_hash *hashes);
int gps_device_digest(uint64_t pointer, uint64_t size, struct gps_digest *digest);
int gps_device_equal(uint64_t a, uint64_t b, uint64_t size, bool *equal);
