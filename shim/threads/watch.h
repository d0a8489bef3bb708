/*
 * watch.h - sleeps until something changes in the published directory.
 *
 * One inotify instance on directories (a watch on a single file dies when the file is replaced).
 * Where there is no instance left (128 a user) waiting is a nap of at most 20 ms. A death shows,
 * too: the kernel closes the dead process's file. Every wait ends after a second at the latest, so
 * the caller looks again at least that often. Own one on the stack; not shared between threads.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "directory/record.h"
#include "directory/store.h"
#include "util/lock.h"

struct gps_watch {
    int fd; /* -1: nap. High, and checked before each use: programs close descriptors of others */
    dev_t device;
    ino_t inode;
};

enum gps_watch_what {
    GPS_WATCH_PROCS = 1,   /* importers come, close, and die */
    GPS_WATCH_REGIONS = 2, /* records appear and change state */
    GPS_WATCH_NAMES = 4,
    GPS_WATCH_ROOT = 8, /* a keeper comes */
};

/* --- single files, each by a number --- */

/* A number, or -errno. The events are of inotify(7). */
int gps_watch_file(const struct gps_watch *watch, const char *path, uint32_t events);
void gps_watch_unfile(const struct gps_watch *watch, int number);
/* Whether the instance is whole, and there is no change that gps_watch_changed has not reported. A
 * change counts from the moment on at which the call that made it returns. */
bool gps_watch_quiet(const struct gps_watch *watch);
/* Wakes the thread that sleeps on the instance, by watching a file that exists for a moment. */
void gps_watch_wake(const struct gps_watch *watch, const char *path);
/* Like gps_watch_wait, but returns only whether there was a change. Then gps_watch_changed calls fn
 * with the number of each changed file; -1: any file may have changed. */
bool gps_watch_sleep(const struct gps_watch *watch, uint64_t nanos);
void gps_watch_changed(struct gps_watch *watch, bool (*fn)(int number));

/* --- directories --- */

void gps_watch_open(struct gps_watch *watch, const struct gps_store *store, unsigned what);
/* Returns when something changed, after min(nanos, 1 s), or when a signal of the program's was
 * handled (program_signals.h). */
void gps_watch_wait(struct gps_watch *watch, uint64_t nanos);
void gps_watch_close(struct gps_watch *watch);

/* --- a thread of ours that looks again whenever the directory changes --- */

/* One static struct a task. Its thread starts with the first gps_background_start, calls `turn`
 * after every change and at least once a second, and ends when nothing is left; the next start
 * begins another one. All signals are blocked in it. Any thread may start a task. */
struct gps_background {
    const char *name; /* of the thread: 15 characters */
    unsigned watched; /* enum gps_watch_what */
    uint64_t (*turn)(
        void); /* does the work at hand; returns how long it may wait then, in nanoseconds */
    bool (*left)(void); /* whether more work may come; called under the lock; NULL: always */
    GPS_LOCK(GPS_RANK_BACKGROUND) lock;
    bool running, stop;
};

/* Inside a gps_scope, after joining the directory. 0 or -errno: the thread could not be started. */
int gps_background_start(struct gps_background *task);
/* No turn begins after this, and no thread starts. */
void gps_background_stop(struct gps_background *task);
bool gps_background_stopped(struct gps_background *task);

void gps_background_reset(struct gps_background *task); /* in a forked child */

/* --- waits for other processes: after a second reported, once, and published --- */

/* On the stack, inside a gps_scope: begin it, take turns until the condition holds, end it. */

struct gps_wait {
    enum gps_slot_via whom; /* GPS_VIA_WAIT_... */
    const char *name;       /* of the region; empty: it has none */
    const struct gps_id *id;
    uint64_t began; /* CLOCK_MONOTONIC */
    uint64_t most;  /* nanoseconds */
    bool said;
    struct gps_watch watch;
    unsigned slot;
};

/* `name` and `id` stay to the end; with a name id may be NULL. `what`: of enum gps_watch_what. */
void gps_wait_begin(struct gps_wait *wait, enum gps_slot_via whom, const char *name,
                    const struct gps_id *id, uint64_t most, unsigned what);
/* Sleeps as gps_watch_wait does. */
void gps_wait_turn(struct gps_wait *wait, uint64_t nanos);
void gps_wait_end(struct gps_wait *wait);
