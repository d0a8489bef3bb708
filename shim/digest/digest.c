/*
 * digest.c - see digest.h.
 *
 * The bytes are handed out window by window: threads that come late, or share their core, take
 * fewer. The pages of a window are brought in by one call, for faulting them in one by one is what
 * limits reading a file mapping; and a window is several times what one page of a page table covers
 * (2 MiB), for threads that fill one together wait for each other (measured: windows of 1 MiB take
 * 8 threads twice as long).
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "digest.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#ifdef __x86_64__
#include <sys/platform/x86.h>
#endif
#include <unistd.h>

#include "worker_pool.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

#define WINDOW (4 * GPS_DIGEST_PIECE)
enum {
    IN_PIECE = GPS_DIGEST_PIECE / GPS_DIGEST_CHUNK,
    PIECES = GPS_DIGEST_MOST / GPS_DIGEST_PIECE,
};

struct work {
    struct gps_pool pool;
    const uint8_t *bytes;
    uint64_t size;
    struct gps_hash pieces[PIECES];
    _Atomic uint64_t next; /* offset of a window */
    _Atomic bool unreadable;
};

/* Special mappings (pinned memory of the driver's) are none that it can bring in, and there. ENOMEM
 * may say that there is no memory just now: msync tells whether that is a hole. */
bool gps_digest_readable(const void *bytes, uint64_t size) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = (uintptr_t)bytes / page * page;
    const uintptr_t end = (uintptr_t)bytes + size;
    if (end < begin)
        return false;
    return madvise((void *)begin, end - begin, MADV_POPULATE_READ) == 0 ||
           (errno == ENOMEM ? msync((void *)begin, end - begin, MS_ASYNC) == 0 : errno != EFAULT);
}

static struct gps_hash plain(const void *bytes, uint64_t length) {
    const XXH128_hash_t hash = XXH3_128bits(bytes, length);
    return (struct gps_hash){hash.low64, hash.high64};
}

/* Not __builtin_cpu_supports: that makes every program ask the processor when we are loaded, which
 * virtual machines take long to answer. */
struct gps_hash gps_digest_chunk(const void *bytes) {
#ifdef __x86_64__
    if (CPU_FEATURE_ACTIVE(AVX2))
        return gps_digest_chunk_avx2(bytes, GPS_DIGEST_CHUNK);
#endif
    return plain(bytes, GPS_DIGEST_CHUNK);
}

static uint64_t sample_of(const struct gps_hash *first, const struct gps_hash *last) {
    const struct gps_hash both[2] = {*first, *last};
    return XXH3_64bits(both, sizeof(both));
}

struct gps_digest gps_digest_combine(const struct gps_hash *chunks, uint64_t size) {
    const uint64_t count = size / GPS_DIGEST_PIECE;
    struct gps_hash pieces[PIECES];
    for (uint64_t i = 0; i < count; i++)
        pieces[i] = plain(chunks + i * IN_PIECE, IN_PIECE * sizeof(*chunks));
    return (struct gps_digest){plain(pieces, count * sizeof(*pieces)),
                               sample_of(chunks, chunks + count * IN_PIECE - 1)};
}

/* --- of main memory --- */

static void do_piece(struct work *work, uint64_t at) {
    struct gps_hash chunks[IN_PIECE];
    for (unsigned i = 0; i < IN_PIECE; i++)
        chunks[i] = gps_digest_chunk(work->bytes + at + i * GPS_DIGEST_CHUNK);
    work->pieces[at / GPS_DIGEST_PIECE] = plain(chunks, sizeof(chunks));
}

static void run(void *arg) {
    struct work *work = arg;
    uint64_t at;
    while ((at = atomic_fetch_add(&work->next, WINDOW)) < work->size && !work->unreadable) {
        const uint64_t end = at + WINDOW < work->size ? at + WINDOW : work->size;
        if (!gps_digest_readable(work->bytes + at, end - at))
            work->unreadable = true;
        for (; at < end && !work->unreadable; at += GPS_DIGEST_PIECE)
            do_piece(work, at);
    }
}

bool gps_digest_of(const void *bytes, uint64_t size, struct gps_digest *digest) {
    struct work work = {.bytes = bytes, .size = size};
    work.pool = (struct gps_pool){.work = run, .arg = &work};
    gps_pool_call(&work.pool, (size_t)((size - 1) / WINDOW));
    run(&work);
    gps_pool_join(&work.pool);
    if (work.unreadable)
        return false;
    digest->hash = plain(work.pieces, size / GPS_DIGEST_PIECE * sizeof(*work.pieces));
    digest->sample = gps_digest_sample(bytes, size);
    return true;
}

uint64_t gps_digest_sample(const void *bytes, uint64_t size) {
    const uint8_t *last = (const uint8_t *)bytes + size - GPS_DIGEST_CHUNK;
    if (!gps_digest_readable(bytes, GPS_DIGEST_CHUNK) ||
        !gps_digest_readable(last, GPS_DIGEST_CHUNK))
        return 0;
    const struct gps_hash ends[2] = {gps_digest_chunk(bytes), gps_digest_chunk(last)};
    return sample_of(&ends[0], &ends[1]);
}
