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
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/processor.h"
#include "worker_pool.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

enum {
    IN_PIECE = GPS_DIGEST_PIECE / GPS_DIGEST_CHUNK,
    PIECES = GPS_DIGEST_MOST / GPS_DIGEST_PIECE,
    WINDOW_LEAST = 32, /* chunks */
    WINDOW_MOST = 256,
    WINDOWS = 16,
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
    if (gps_has_avx2())
        return gps_digest_chunk_avx2(bytes, GPS_DIGEST_CHUNK);
#endif
    return plain(bytes, GPS_DIGEST_CHUNK);
}

/* The pieces are bytes, as XXH3 reads them: aarch64's gcc takes structs so read for uninitialised.
 */
struct gps_digest gps_digest_combine(const struct gps_hash *chunks, uint64_t size) {
    const uint64_t count = size / GPS_DIGEST_PIECE;
    uint8_t pieces[PIECES * sizeof(struct gps_hash)];
    for (uint64_t i = 0; i < count; i++) {
        const struct gps_hash piece = plain(chunks + i * IN_PIECE, IN_PIECE * sizeof(*chunks));
        memcpy(pieces + i * sizeof(piece), &piece, sizeof(piece));
    }
    return (struct gps_digest){plain(pieces, count * sizeof(struct gps_hash)), *chunks};
}

/* --- main memory --- */

struct gps_digest_work {
    struct gps_pool pool;
    const uint8_t *bytes;
    const struct gps_hash *expected; /* NULL: the hashes are kept for later */
    uint64_t count, window;          /* chunks */
    _Atomic uint64_t next;
    _Atomic bool stopped; /* it differs, cannot be read, or is not wanted any more */
    struct gps_hash hashes[];
};

static bool take_chunk(struct gps_digest_work *work, uint64_t at) {
    const struct gps_hash hash = gps_digest_chunk(work->bytes + at * GPS_DIGEST_CHUNK);
    if (work->expected)
        return memcmp(&hash, &work->expected[at], sizeof(hash)) == 0;
    work->hashes[at] = hash;
    return true;
}

/* Behind a difference nothing needs a look. */
static void run(void *arg) {
    struct gps_digest_work *work = arg;
    uint64_t at;
    while ((at = atomic_fetch_add(&work->next, work->window)) < work->count && !work->stopped) {
        const uint64_t left = work->count - at;
        const uint64_t end = at + (left < work->window ? left : work->window);
        if (!gps_digest_readable(work->bytes + at * GPS_DIGEST_CHUNK,
                                 (end - at) * GPS_DIGEST_CHUNK))
            work->stopped = true;
        while (at < end && !work->stopped)
            if (!take_chunk(work, at++))
                work->stopped = true;
    }
}

static uint64_t window_of(uint64_t count) {
    const uint64_t part = count / WINDOWS;
    return part < WINDOW_LEAST ? WINDOW_LEAST : part > WINDOW_MOST ? WINDOW_MOST : part;
}

/* The caller comes, too, at last. */
static void begin(struct gps_digest_work *work) {
    work->window = window_of(work->count);
    work->pool = (struct gps_pool){.work = run, .arg = work};
    gps_pool_call(&work->pool, work->count ? (work->count - 1) / work->window : 0);
}

static bool end(struct gps_digest_work *work) {
    run(work);
    gps_pool_join(&work->pool);
    return !work->stopped;
}

bool gps_digest_compare(const void *bytes, uint64_t count, const struct gps_hash *expected) {
    struct gps_digest_work work = {.bytes = bytes, .count = count, .expected = expected};
    begin(&work);
    return end(&work);
}

struct gps_digest_work *gps_digest_begin(const void *bytes, uint64_t count) {
    struct gps_digest_work *work = calloc(1, sizeof(*work) + count * sizeof(work->hashes[0]));
    if (!work)
        return NULL;
    work->bytes = bytes;
    work->count = count;
    begin(work);
    return work;
}

bool gps_digest_end(struct gps_digest_work *work, const struct gps_hash *expected) {
    work->stopped |= !expected;
    const bool equal =
        end(work) && memcmp(work->hashes, expected, work->count * sizeof(*expected)) == 0;
    free(work);
    return equal;
}
