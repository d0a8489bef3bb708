/*
 * digest.c - see digest.h.
 *
 * The chunks are handed out one by one: threads that come late, or share their core, take fewer. A
 * chunk's pages are brought in by one call each; faulting them in one by one is what limits reading
 * a file mapping.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "digest.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hashes.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

enum { THREADS = 16, CHUNKS_A_THREAD = 8 /* below that starting one takes longer */ };
#define STACK (128u << 10)

struct work {
    const uint8_t *bytes;
    uint64_t size;
    size_t count;
    uint64_t *made; /* or */
    const uint64_t *expected;
    _Atomic size_t next;
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

static void note_difference(struct work *work, size_t chunk) {
    size_t first = atomic_load(&work->differs);
    while (chunk < first && !atomic_compare_exchange_weak(&work->differs, &first, chunk)) {
    }
}

static void hash_one(struct work *work, size_t chunk) {
    const uint64_t offset = chunk * GPS_HASH_CHUNK, left = work->size - offset;
    const size_t length = left < GPS_HASH_CHUNK ? left : GPS_HASH_CHUNK;
    if (!gps_digest_readable(work->bytes + offset, length)) {
        atomic_store(&work->unreadable, true);
        return;
    }
    const uint64_t hash = XXH3_64bits(work->bytes + offset, length);
    if (work->made)
        work->made[chunk] = hash;
    else if (hash != work->expected[chunk])
        note_difference(work, chunk);
}

/* Chunks behind a difference need no look. */
static void *run(void *arg) {
    struct work *work = arg;
    size_t chunk;
    while ((chunk = atomic_fetch_add(&work->next, 1)) < work->count &&
           chunk < atomic_load(&work->differs) && !atomic_load(&work->unreadable))
        hash_one(work, chunk);
    return NULL;
}

static unsigned threads_for(size_t chunks) {
    cpu_set_t allowed;
    const unsigned cores =
        sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? (unsigned)CPU_COUNT(&allowed) : 1;
    const unsigned most = cores < THREADS ? cores : THREADS;
    return chunks / CHUNKS_A_THREAD < most ? (unsigned)(chunks / CHUNKS_A_THREAD) : most;
}

/* The caller is one of them. */
static void run_all(struct work *work) {
    pthread_t threads[THREADS];
    pthread_attr_t attributes;
    const unsigned wanted = threads_for(work->count);
    unsigned started = 0;
    if (wanted > 1 && pthread_attr_init(&attributes) == 0) {
        pthread_attr_setstacksize(&attributes, STACK);
        while (started + 1 < wanted &&
               pthread_create(&threads[started], &attributes, run, work) == 0)
            started++;
        pthread_attr_destroy(&attributes);
    }
    run(work);
    while (started)
        pthread_join(threads[--started], NULL);
}

bool gps_digest_make(const void *bytes, uint64_t size, uint64_t *hashes) {
    struct work work = {.bytes = bytes,
                        .size = size,
                        .count = (size_t)gps_hashes_count(size),
                        .made = hashes,
                        .differs = GPS_DIGEST_EQUAL};
    run_all(&work);
    return !work.unreadable;
}

size_t gps_digest_compare(const void *bytes, uint64_t size, const uint64_t *expected) {
    struct work work = {.bytes = bytes,
                        .size = size,
                        .count = (size_t)gps_hashes_count(size),
                        .expected = expected,
                        .differs = GPS_DIGEST_EQUAL};
    run_all(&work);
    return work.unreadable ? GPS_DIGEST_UNREADABLE : work.differs;
}
