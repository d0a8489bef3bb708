/*
 * The threads take the bytes window by window, so a thread that starts late or shares its core
 * takes fewer. One madvise call faults in all pages of a window, because separate page faults limit
 * how fast a file mapping can be read. A window is several times as large as the memory that one
 * page of a page table covers (2 MiB), because threads that fill the same one wait for each other
 * (measured: with windows of 1 MiB, 8 threads take twice as long).
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "digest.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/peek.h"
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

/* Only a result of 0 means that the bytes can be read. EINVAL may mean a page without access, a
 * special mapping (memory of the driver's), or a kernel before 5.14, which does not know the
 * request. ENOMEM may mean a hole or a lack of memory. The driver copies bytes not read here. */
bool gps_digest_readable(const void *bytes, uint64_t size) {
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = (uintptr_t)bytes / page * page;
    const uintptr_t end = (uintptr_t)bytes + size;
    if (end < begin)
        return false;
    return madvise((void *)begin, end - begin, MADV_POPULATE_READ) == 0;
}

_Static_assert(GPS_SECRET_BYTES == sizeof(XXH3_kSecret), "the public key has that size");

static struct {
    uint8_t bytes[GPS_SECRET_BYTES];
    _Atomic bool given;
} secret;

void gps_digest_use(const uint8_t *bytes) {
    memcpy(secret.bytes, bytes, sizeof(secret.bytes));
    secret.given = true;
}

const uint8_t *gps_digest_secret(void) {
    return secret.given ? secret.bytes : XXH3_kSecret;
}

static struct gps_hash plain(const void *bytes, uint64_t length) {
    const XXH128_hash_t hash =
        XXH3_128bits_withSecret(bytes, length, gps_digest_secret(), GPS_SECRET_BYTES);
    return (struct gps_hash){hash.low64, hash.high64};
}

/* __builtin_cpu_supports is not used: it would execute cpuid in every program when the library is
 * loaded, which is slow in a virtual machine. */
struct gps_hash gps_digest_chunk(const void *bytes) {
#ifdef __x86_64__
    if (gps_processor_has_avx2())
        return gps_digest_chunk_avx2(bytes, GPS_DIGEST_CHUNK, gps_digest_secret());
#endif
    return plain(bytes, GPS_DIGEST_CHUNK);
}

/* The pieces are bytes: of structs gcc for aarch64 warns as uninitialised when XXH3 reads them. */
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
    const struct gps_hash *expected; /* NULL: the hashes are stored in `hashes` */
    uint64_t count, window;          /* chunks */
    bool pinned;
    bool handled; /* the program has a handler of faults */
    _Atomic uint64_t next;
    _Atomic bool stopped; /* the bytes differ, cannot be read, or are no longer of interest */
    struct gps_hash hashes[];
};

static bool is_handled(int signal) {
    struct sigaction action;
    return sigaction(signal, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
           action.sa_handler != SIG_IGN;
}

/* `room`: for a chunk, or NULL where the bytes are read where they lie. */
static bool take_chunk(struct gps_digest_work *work, uint64_t at, void *room) {
    const uint8_t *bytes = work->bytes + at * GPS_DIGEST_CHUNK;
    if (room && !gps_peek((uintptr_t)bytes, room, GPS_DIGEST_CHUNK))
        return false;
    const struct gps_hash hash = gps_digest_chunk(room ? room : bytes);
    if (work->expected)
        return memcmp(&hash, &work->expected[at], sizeof(hash)) == 0;
    work->hashes[at] = hash;
    return true;
}

/* Stops at the first difference. */
static void run_in(struct gps_digest_work *work, void *room) {
    uint64_t at;
    while ((at = atomic_fetch_add(&work->next, work->window)) < work->count && !work->stopped) {
        const uint64_t left = work->count - at;
        const uint64_t end = at + (left < work->window ? left : work->window);
        if (!work->pinned && !gps_digest_readable(work->bytes + at * GPS_DIGEST_CHUNK,
                                                  (end - at) * GPS_DIGEST_CHUNK))
            work->stopped = true;
        while (at < end && !work->stopped)
            if (!take_chunk(work, at++, room))
                work->stopped = true;
    }
}

/* A thread of ours lacks the state that the program's handler of faults looks for. So it must cause
 * no fault: where there is such a handler the kernel copies the bytes. */
static void digest_run(void *arg) {
    struct gps_digest_work *work = arg;
    void *room = work->handled ? malloc(GPS_DIGEST_CHUNK) : NULL;
    if (work->handled && !room)
        work->stopped = true;
    run_in(work, room);
    free(room);
}

static uint64_t window_of(uint64_t count) {
    const uint64_t part = count / WINDOWS;
    return part < WINDOW_LEAST ? WINDOW_LEAST : part > WINDOW_MOST ? WINDOW_MOST : part;
}

/* The caller's own thread is one more: it works in digest_end(). */
static void digest_begin(struct gps_digest_work *work) {
    work->window = window_of(work->count);
    work->handled = !work->pinned && (is_handled(SIGSEGV) || is_handled(SIGBUS));
    work->pool = (struct gps_pool){.work = digest_run, .arg = work};
    gps_worker_pool_call(&work->pool, work->count ? (work->count - 1) / work->window : 0);
}

static bool digest_end(struct gps_digest_work *work) {
    digest_run(work);
    gps_worker_pool_join(&work->pool);
    return !work->stopped;
}

bool gps_digest_compare(const void *bytes, uint64_t count, bool pinned,
                        const struct gps_hash *expected) {
    struct gps_digest_work work = {
        .bytes = bytes, .count = count, .pinned = pinned, .expected = expected};
    digest_begin(&work);
    return digest_end(&work);
}

struct gps_digest_work *gps_digest_begin(const void *bytes, uint64_t count, bool pinned) {
    struct gps_digest_work *work = calloc(1, sizeof(*work) + count * sizeof(work->hashes[0]));
    if (!work)
        return NULL;
    work->bytes = bytes;
    work->count = count;
    work->pinned = pinned;
    digest_begin(work);
    return work;
}

bool gps_digest_finish(struct gps_digest_work *work, struct gps_digest *digest) {
    const bool read = digest_end(work);
    if (read)
        *digest = gps_digest_combine(work->hashes, work->count * GPS_DIGEST_CHUNK);
    free(work);
    return read;
}

bool gps_digest_end(struct gps_digest_work *work, const struct gps_hash *expected) {
    work->stopped |= !expected;
    const bool equal =
        digest_end(work) && memcmp(work->hashes, expected, work->count * sizeof(*expected)) == 0;
    free(work);
    return equal;
}
