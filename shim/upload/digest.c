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
#include <unistd.h>

#include "util/processor.h"
#include "worker_pool.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

#define WINDOW (4 * GPS_HASH_CHUNK)
enum { PIECES = GPS_DIGEST_STAGE / GPS_DIGEST_PIECE };

struct work {
    struct gps_pool crew;
    const uint8_t *bytes;
    uint64_t size;
    uint64_t *made;           /* the hashes, or NULL: they are compared */
    const uint64_t *expected; /* then */
    _Atomic uint64_t next;    /* offset of a window */
    _Atomic size_t differs;   /* the first chunk that does */
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

/* Not __builtin_cpu_supports: that makes every program ask the processor when we are loaded, which
 * virtual machines take long to answer. */
uint64_t gps_digest_chunk(const void *bytes, uint64_t length) {
#ifdef __x86_64__
    if (gps_has_avx2())
        return gps_digest_chunk_avx2(bytes, length);
#endif
    return XXH3_64bits(bytes, length);
}

static void note_difference(struct work *work, size_t chunk) {
    size_t first = atomic_load(&work->differs);
    while (chunk < first && !atomic_compare_exchange_weak(&work->differs, &first, chunk)) {
    }
}

static uint64_t at_most(uint64_t length, uint64_t most) {
    return length < most ? length : most;
}

static void do_window(struct work *work, uint64_t at) {
    const uint64_t end = at + at_most(work->size - at, WINDOW);
    if (!work->made && !gps_digest_readable(work->bytes + at, end - at)) {
        atomic_store(&work->unreadable, true);
        return;
    }
    for (; at < end; at += GPS_HASH_CHUNK) {
        const size_t chunk = at / GPS_HASH_CHUNK;
        const uint64_t hash = gps_digest_chunk(work->bytes + at, at_most(end - at, GPS_HASH_CHUNK));
        if (work->made) {
            work->made[chunk] = hash;
        } else if (hash != work->expected[chunk]) {
            note_difference(work, chunk);
            return;
        }
    }
}

/* Windows behind a difference need no look. */
static void run(void *arg) {
    struct work *work = arg;
    uint64_t at;
    while ((at = atomic_fetch_add(&work->next, WINDOW)) < work->size &&
           at / GPS_HASH_CHUNK < atomic_load(&work->differs) && !atomic_load(&work->unreadable))
        do_window(work, at);
}

/* `others`: of the windows, those that are not for the caller. */
static void start(struct work *work, uint64_t others) {
    work->crew = (struct gps_pool){.work = run, .arg = work};
    work->differs = GPS_DIGEST_EQUAL;
    gps_pool_call(&work->crew, (size_t)others);
}

static void finish(struct work *work) {
    run(work);
    gps_pool_join(&work->crew);
}

size_t gps_digest_compare(const void *bytes, uint64_t size, const uint64_t *expected) {
    struct work work = {.bytes = bytes, .size = size, .expected = expected};
    start(&work, size < WINDOW ? 0 : size / WINDOW - 1);
    finish(&work);
    return work.unreadable ? GPS_DIGEST_UNREADABLE : work.differs;
}

/* The reader hashes, too, while it has nowhere to read to. */
bool gps_digest_read(gps_digest_read_fn *read, void *arg, uint8_t *stage, uint64_t size,
                     uint64_t *hashes) {
    struct work pieces[PIECES] = {0};
    bool done = true;
    for (uint64_t at = 0; done && at < size; at += GPS_DIGEST_PIECE) {
        struct work *piece = &pieces[at / GPS_DIGEST_PIECE % PIECES];
        uint8_t *to = stage + at % GPS_DIGEST_STAGE;
        const uint64_t length = at_most(size - at, GPS_DIGEST_PIECE);
        finish(piece);
        done = read(arg, to, at, length);
        *piece = (struct work){
            .bytes = to, .size = done ? length : 0, .made = hashes + at / GPS_HASH_CHUNK};
        start(piece, piece->size / WINDOW);
    }
    for (unsigned i = 0; i < PIECES; i++)
        finish(&pieces[i]);
    return done;
}
