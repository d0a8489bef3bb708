/*
 * background.h - a thread of ours that looks again whenever the published directory changes.
 *
 * One static struct a task. Its thread starts with the first gps_background_start, calls `turn`
 * after every change and at least once a second, and ends when nothing is left; the next start
 * begins another one. All signals are blocked in it. Any thread may start a task.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "util/lock.h"

struct gps_background {
    const char *name; /* of the thread: 15 characters */
    unsigned watched; /* enum gps_watch_what */
    uint64_t (*turn)(
        void);          /* does what there is to do; how long it may wait then, in nanoseconds */
    bool (*left)(void); /* whether there is more to come, asked under the lock; NULL: always */
    GPS_LOCK(GPS_RANK_BACKGROUND) lock;
    bool running, stop;
};

/* Inside a gps_scope, after joining the directory. 0 or -errno: the thread could not be started. */
int gps_background_start(struct gps_background *task);
/* No turn begins after this, and no thread starts. */
void gps_background_stop(struct gps_background *task);
bool gps_background_stopped(struct gps_background *task);

void gps_background_reset(struct gps_background *task); /* in a forked child */
