/* readback.c - see readback.h. */
#include "readback.h"

#include <pthread.h>

#include "digest.h"
#include "hashes.h"
#include "worker_pool.h"

/* Six threads hash faster than any link to a device reads. */
enum { THREADS = 6, CHUNKS_A_THREAD = 8, SLOTS = 4, SLOT = GPS_READBACK_PIECE / GPS_HASH_CHUNK };
_Static_assert(SLOTS *GPS_READBACK_PIECE == GPS_READBACK_STAGE, "the stage is its slots");

/* Chunk i of the whole lies in slot i / SLOT % SLOTS of the stage. */
struct work {
    const struct gps_readback *what;
    pthread_mutex_t lock;
    pthread_cond_t filled_more, emptied;
    size_t next, filled;  /* chunks: to be hashed next, and that can be */
    unsigned full[SLOTS]; /* chunks in a slot that are not hashed yet */
    bool ended;           /* nothing more will be filled */
};

static uint64_t length_of(const struct gps_readback *what, uint64_t at, uint64_t most) {
    return what->size - at < most ? what->size - at : most;
}

static void hash_one(const struct gps_readback *what, size_t chunk) {
    const uint64_t at = chunk * GPS_HASH_CHUNK;
    what->hashes[chunk] = gps_digest_chunk(what->stage + at % GPS_READBACK_STAGE,
                                           length_of(what, at, GPS_HASH_CHUNK));
}

/* With the lock, which it lets go of meanwhile. False: there is nothing to hash now. */
static bool take_one(struct work *work) {
    if (work->next == work->filled)
        return false;
    const size_t chunk = work->next++;
    unsigned *full = &work->full[chunk / SLOT % SLOTS];
    pthread_mutex_unlock(&work->lock);
    hash_one(work->what, chunk);
    pthread_mutex_lock(&work->lock);
    if (--*full == 0)
        pthread_cond_signal(&work->emptied);
    return true;
}

static void run(void *arg) {
    struct work *work = arg;
    pthread_mutex_lock(&work->lock);
    while (take_one(work) || !work->ended)
        if (work->next == work->filled && !work->ended)
            pthread_cond_wait(&work->filled_more, &work->lock);
    pthread_mutex_unlock(&work->lock);
}

/* The reader hashes, too, while it has nowhere to read to. */
static void make_room(struct work *work, unsigned slot) {
    pthread_mutex_lock(&work->lock);
    while (work->full[slot])
        if (!take_one(work))
            pthread_cond_wait(&work->emptied, &work->lock);
    pthread_mutex_unlock(&work->lock);
}

static void note_filled(struct work *work, unsigned slot, size_t chunks) {
    pthread_mutex_lock(&work->lock);
    work->full[slot] = (unsigned)chunks;
    work->filled += chunks;
    pthread_cond_broadcast(&work->filled_more);
    pthread_mutex_unlock(&work->lock);
}

static bool read_all(struct work *work) {
    const struct gps_readback *what = work->what;
    for (uint64_t at = 0; at < what->size; at += GPS_READBACK_PIECE) {
        const unsigned slot = (unsigned)(at / GPS_READBACK_PIECE % SLOTS);
        const uint64_t length = length_of(what, at, GPS_READBACK_PIECE);
        make_room(work, slot);
        if (!what->read(what->arg, what->stage + at % GPS_READBACK_STAGE, at, length))
            return false;
        note_filled(work, slot, (size_t)gps_hashes_count(length));
    }
    return true;
}

bool gps_readback_hash(const struct gps_readback *readback) {
    struct work work = {.what = readback,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .filled_more = PTHREAD_COND_INITIALIZER,
                        .emptied = PTHREAD_COND_INITIALIZER};
    struct gps_pool crew = {.work = run, .arg = &work};
    const size_t threads = (size_t)gps_hashes_count(readback->size) / CHUNKS_A_THREAD;
    gps_pool_call(&crew, threads < THREADS ? threads : THREADS);
    const bool done = read_all(&work);
    pthread_mutex_lock(&work.lock);
    work.ended = true;
    pthread_cond_broadcast(&work.filled_more);
    pthread_mutex_unlock(&work.lock);
    run(&work);
    gps_pool_join(&crew);
    return done;
}
