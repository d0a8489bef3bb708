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

#include "hashes.h"
#include "worker_pool.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

enum { WINDOW = 4 /* chunks */ };

/* Of a piece that is read back, 8 chunks. Two of its threads hash as fast as any link reads. */
enum { CHUNKS_A_THREAD = 4, PIECES = GPS_DIGEST_STAGE / GPS_DIGEST_PIECE };

struct work {
    const uint8_t *bytes;
    uint64_t size;
    size_t count;
    const uint64_t *expected;
    _Atomic size_t next;    /* chunk */
    _Atomic size_t differs; /* the first that does */
    _Atomic bool unreadable;
};

/* Special mappings (pinned memory of the driver's) are none that it can bring in, and there. */
bool gps_digest_readable(const void *bytes, uint64_t size) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = (uintptr_t)bytes / page * page;
    const uintptr_t end = (uintptr_t)bytes + size;
    return end >= begin && (madvise((void *)begin, end - begin, MADV_POPULATE_READ) == 0 ||
                            (errno != EFAULT && errno != ENOMEM));
}

/* Not __builtin_cpu_supports: that makes every program ask the processor when we are loaded, which
 * virtual machines take long to answer. */
uint64_t gps_digest_chunk(const void *bytes, uint64_t length) {
#ifdef __x86_64__
    if (CPU_FEATURE_ACTIVE(AVX2))
        return gps_digest_chunk_avx2(bytes, length);
#endif
    return XXH3_64bits(bytes, length);
}

static void note_difference(struct work *work, size_t chunk) {
    size_t first = atomic_load(&work->differs);
    while (chunk < first && !atomic_compare_exchange_weak(&work->differs, &first, chunk)) {
    }
}

static uint64_t until(const struct work *work, size_t chunk) {
    const uint64_t end = chunk * GPS_HASH_CHUNK;
    return end < work->size ? end : work->size;
}

static void compare_window(struct work *work, size_t first) {
    const uint64_t begin = until(work, first), end = until(work, first + WINDOW);
    if (!gps_digest_readable(work->bytes + begin, end - begin)) {
        atomic_store(&work->unreadable, true);
        return;
    }
    for (size_t chunk = first; until(work, chunk) < end; chunk++) {
        const uint64_t at = until(work, chunk);
        if (gps_digest_chunk(work->bytes + at, until(work, chunk + 1) - at) !=
            work->expected[chunk]) {
            note_difference(work, chunk);
            return;
        }
    }
}

/* Windows behind a difference need no look. */
static void run(void *arg) {
    struct work *work = arg;
    size_t chunk;
    while ((chunk = atomic_fetch_add(&work->next, WINDOW)) < work->count &&
           chunk < atomic_load(&work->differs) && !atomic_load(&work->unreadable))
        compare_window(work, chunk);
}

size_t gps_digest_compare(const void *bytes, uint64_t size, const uint64_t *expected) {
    struct work work = {.bytes = bytes,
                        .size = size,
                        .count = (size_t)gps_hashes_count(size),
                        .expected = expected,
                        .differs = GPS_DIGEST_EQUAL};
    struct gps_pool crew = {.work = run, .arg = &work};
    const size_t windows = work.count / WINDOW;
    gps_pool_call(&crew, windows ? windows - 1 : 0);
    run(&work);
    gps_pool_join(&crew);
    return work.unreadable ? GPS_DIGEST_UNREADABLE : work.differs;
}

/* --- what is read back piece by piece --- */

struct piece {
    struct gps_pool crew;
    const uint8_t *bytes;
    uint64_t size;
    uint64_t *hashes;
    _Atomic uint64_t next; /* offset of a chunk */
};

static void hash(void *arg) {
    struct piece *piece = arg;
    uint64_t at;
    while ((at = atomic_fetch_add(&piece->next, GPS_HASH_CHUNK)) < piece->size) {
        const uint64_t left = piece->size - at;
        piece->hashes[at / GPS_HASH_CHUNK] =
            gps_digest_chunk(piece->bytes + at, left < GPS_HASH_CHUNK ? left : GPS_HASH_CHUNK);
    }
}

static void finish(struct piece *piece) {
    hash(piece);
    gps_pool_join(&piece->crew);
}

/* The reader hashes, too, while it has nowhere to read to. */
bool gps_digest_read(gps_digest_read_fn *read, void *arg, uint8_t *stage, uint64_t size,
                     uint64_t *hashes) {
    struct piece pieces[PIECES] = {0};
    bool done = true;
    for (uint64_t at = 0; done && at < size; at += GPS_DIGEST_PIECE) {
        struct piece *piece = &pieces[at / GPS_DIGEST_PIECE % PIECES];
        uint8_t *to = stage + at % GPS_DIGEST_STAGE;
        const uint64_t length = size - at < GPS_DIGEST_PIECE ? size - at : GPS_DIGEST_PIECE;
        finish(piece);
        done = read(arg, to, at, length);
        *piece = (struct piece){.crew = {.work = hash, .arg = piece},
                                .bytes = to,
                                .size = done ? length : 0,
                                .hashes = hashes + at / GPS_HASH_CHUNK};
        gps_pool_call(&piece->crew, (size_t)(piece->size / GPS_HASH_CHUNK) / CHUNKS_A_THREAD);
    }
    for (unsigned i = 0; i < PIECES; i++)
        finish(&pieces[i]);
    return done;
}
