/*
 * lock.h - the mutexes of the library, the order in which they are taken, and the calls that are
 * allowed while one is held.
 *
 * Each kind of lock has a rank. A thread that holds a lock takes only locks of a higher rank, so no
 * two threads wait for each other. The calls that are allowed under a lock are part of its rank:
 * most are held for some instructions only. No lock is held while the program's signals are let in,
 * because a signal handler may leave by longjmp. A thread that takes a lock has all signals blocked
 * (gps_scope), but not for the tables of registry/: handlers must not call the driver.
 *
 * A word of each thread has the ranks that it holds. It is kept in every build, at the cost of six
 * instructions a lock, because the tests run the library that ships. The order is checked where a
 * lock is taken, and the rest where the driver is called (driver_ops.h), a file is used
 * (directory/file.c, log/sink.c), the keeper is waited for (keeper_client.c), and signals are let
 * in (program_signals.h). assertion.h tells what a violation does.
 *
 * A lock that is all zero is free, so a forked child frees it by memset.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* The calls that are allowed while a lock is held. */
enum gps_lock_use {
    GPS_LOCK_BRIEF = 0,  /* some instructions */
    GPS_LOCK_DRIVER = 1, /* calls of the driver that wait for no stream of the program's */
    GPS_LOCK_FILE = 2,   /* files: the directory, which is in memory, and logs */
};

/* The ranks, in the order in which locks are taken. */
#define GPS_RANKS(RANK)                                                                            \
    /* gate/swap.h: a block stays mapped while a kernel of ours reads it: for milliseconds, or for \
     * as long as the device runs that behind kernels of the program's. */                         \
    RANK(SWAP, GPS_LOCK_DRIVER | GPS_LOCK_FILE)                                                    \
    /* merge/area.h: a block has one state at a time, so it is mapped under the lock, and its      \
     * slot is written. Each is a call of microseconds. */                                         \
    RANK(AREAS, GPS_LOCK_DRIVER | GPS_LOCK_FILE)                                                   \
    /* merge/steady.c: one thread reads the directory for all that want the free memory, and asks  \
     * the driver again. Some microseconds a process, as long as nothing is stored. */             \
    RANK(SAVED, GPS_LOCK_DRIVER | GPS_LOCK_FILE)                                                   \
    RANK(STREAMS, GPS_LOCK_BRIEF)                                                                  \
    /* frames/: a frame is whole in one thread at a time. Copies on a stream of ours are begun,    \
     * which no thread waits for, and the file names the owner of each slot. */                    \
    RANK(FRAMES, GPS_LOCK_DRIVER | GPS_LOCK_FILE)                                                  \
    RANK(OPEN_CACHE, GPS_LOCK_BRIEF) /* inotify, which never blocks; starts a thread */            \
    /* ipc/token.c: a run of mappings has one token, which is in the directory when another thread \
     * gets it; and it is over there before the driver unmaps a part. A few files each. */         \
    RANK(TOKENS, GPS_LOCK_FILE)                                                                    \
    /* vmm/mirror.c: a block of another process is mapped once, by one thread, and not unmapped    \
     * meanwhile. Each is a call of microseconds. */                                               \
    RANK(MIRRORS, GPS_LOCK_DRIVER)                                                                 \
    /* process/membership.c: the first thread that needs the directory joins it, and the others    \
     * need it, too: some twenty system calls, once. */                                            \
    RANK(JOINING, GPS_LOCK_FILE)                                                                   \
    /* process/references.c: of two writes of a slot the last one must win. One pwrite each. */    \
    RANK(SLOTS, GPS_LOCK_FILE)                                                                     \
    RANK(FRAME_FILES, GPS_LOCK_FILE) /* frames/: one pread or pwrite each */                       \
    RANK(BACKGROUND, GPS_LOCK_BRIEF) /* starts a thread */                                         \
    RANK(POOL, GPS_LOCK_BRIEF)       /* starts threads */                                          \
    RANK(MAPPINGS, GPS_LOCK_BRIEF)                                                                 \
    RANK(PADDINGS, GPS_LOCK_BRIEF)                                                                 \
    RANK(ALLOCATIONS, GPS_LOCK_BRIEF)                                                              \
    RANK(IMPORTS, GPS_LOCK_BRIEF)                                                                  \
    RANK(EVENTS, GPS_LOCK_BRIEF)                                                                   \
    RANK(DEFERRED, GPS_LOCK_BRIEF)                                                                 \
    RANK(RECORD_CLAIMS, GPS_LOCK_BRIEF)                                                            \
    RANK(BOOKS, GPS_LOCK_BRIEF)                                                                    \
    RANK(POOL_BOOKS, GPS_LOCK_BRIEF)                                                               \
    RANK(GRAPHS, GPS_LOCK_BRIEF)                                                                   \
    RANK(TABLE_MEMORY, GPS_LOCK_BRIEF)                                                             \
    RANK(RULE_COUNTS, GPS_LOCK_BRIEF)                                                              \
    RANK(TRACES, GPS_LOCK_BRIEF)

enum gps_rank {
    GPS_RANK_NONE,
#define GPS_RANK_NUMBER(rank, use) GPS_RANK_##rank,
    GPS_RANKS(GPS_RANK_NUMBER)
};

/* The ranks that may be held across one kind of use, a bit each. */
enum gps_rank_mask {
#define GPS_RANK_BIT(rank, may, use) ((may) & (use) ? 1 << GPS_RANK_##rank : 0) |
#define GPS_RANK_DRIVER(rank, may)   GPS_RANK_BIT(rank, may, GPS_LOCK_DRIVER)
#define GPS_RANK_FILE(rank, may)     GPS_RANK_BIT(rank, may, GPS_LOCK_FILE)
    GPS_ACROSS_DRIVER = GPS_RANKS(GPS_RANK_DRIVER) 0,
    GPS_ACROSS_FILE = GPS_RANKS(GPS_RANK_FILE) 0,
    GPS_ACROSS_WAIT = 0, /* for the keeper, or with the program's signals let in */
};

/* A mutex of a rank; the type says which. */
#define GPS_LOCK(rank_)                                                                            \
    union {                                                                                        \
        pthread_mutex_t mutex;                                                                     \
        char (*rank)[rank_];                                                                       \
    }

extern __thread uint32_t gps_locks_held; /* a bit for each rank */

__attribute__((cold)) void gps_lock_failed(uint32_t wrong, const char *becomes);
__attribute__((cold)) void gps_lock_out_of_order(unsigned rank);

static inline void gps_lock_enter(pthread_mutex_t *mutex, unsigned rank) {
    if (__builtin_expect(gps_locks_held >> rank, 0))
        gps_lock_out_of_order(rank);
    pthread_mutex_lock(mutex);
    gps_locks_held |= 1u << rank;
}

typedef int gps_trylock_fn(pthread_mutex_t *mutex);

static inline bool gps_lock_try_enter(pthread_mutex_t *mutex, unsigned rank,
                                      gps_trylock_fn *trylock) {
    if (__builtin_expect(gps_locks_held >> rank, 0))
        gps_lock_out_of_order(rank);
    if (trylock(mutex) != 0)
        return false;
    gps_locks_held |= 1u << rank;
    return true;
}

static inline void gps_lock_leave(pthread_mutex_t *mutex, unsigned rank) {
    gps_locks_held &= ~(1u << rank);
    pthread_mutex_unlock(mutex);
}

#define gps_lock_take(lock) gps_lock_enter(&(lock)->mutex, (unsigned)sizeof(*(lock)->rank))
/* False: another thread holds it. For locks that threads may hold for long. `trylock` is that of
 * libc, which was in libpthread before glibc 2.34: it is looked up. */
#define gps_lock_try(lock, trylock)                                                                \
    gps_lock_try_enter(&(lock)->mutex, (unsigned)sizeof(*(lock)->rank), (trylock))
#define gps_lock_give(lock) gps_lock_leave(&(lock)->mutex, (unsigned)sizeof(*(lock)->rank))

struct gps_locked {
    pthread_mutex_t *mutex;
    unsigned rank;
};

static inline void gps_lock_end(const struct gps_locked *locked) {
    gps_lock_leave(locked->mutex, locked->rank);
}

/* Takes a lock until the end of the block. */
#define GPS_LOCKED(lock)                                                                           \
    gps_lock_take(lock);                                                                           \
    const struct gps_locked locked __attribute__((unused, cleanup(gps_lock_end))) = {              \
        &(lock)->mutex, (unsigned)sizeof(*(lock)->rank)}

/* Asserts that only locks of these ranks (GPS_ACROSS_...) are held. */
static inline void gps_lock_check(unsigned mask, const char *becomes) {
    if (__builtin_expect(gps_locks_held & ~mask, 0))
        gps_lock_failed(gps_locks_held & ~mask, becomes);
}
