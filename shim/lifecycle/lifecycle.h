/*
 * lifecycle.h - the first call of a process, its forks and its end.
 *
 * Nothing happens until the program makes its first call of the driver. Then the configuration is
 * read, and the process gets its identity (start.c). A forked child forgets both (fork.c) and
 * starts anew with its own first call.
 *
 * The end has two parts (exit.c). The exit handler runs before the driver is torn down: it is
 * registered once the driver has begun. It waits for importers where the configuration says so, and
 * reports the memory that other processes still hold. The library's destructor runs last: it
 * removes what this process published and writes the summary. In a process that ends with _exit the
 * hook of _exit does both; in one that ends with quick_exit a handler does, which runs after the
 * program's handlers. Where a signal ends the process neither runs, and the kernel drops its lease.
 */
#pragma once

#include <stdbool.h>

#include "driver/driver_ops.h"

/* The process's first call. `attach` finds the driver: without one nothing changes. True when
 * gpushare acts from now on. Any thread. */
bool gps_lifecycle_begin(gps_attach_fn *attach);

/* The driver has begun. Registers the exit handler, so it runs before the driver's. */
void gps_lifecycle_driver_ready(void);

/* A call of the program's has answered "not initialized", and has not returned yet. If the parent
 * of this process had initialised the driver before the fork, reports fork-with-context. */
void gps_lifecycle_not_initialized(void);

/* Runs both parts of the end, once: for the hooks of _exit and its like, after which the program
 * runs nothing more on this thread. A call that another thread begins meanwhile does not return,
 * because our state may be withdrawn already. Nor does another thread's end. */
void gps_lifecycle_end(void);
/* For such a call, and one refused meanwhile: returns only where no other thread is in _exit. */
void gps_lifecycle_stay(void);

/* --- between the files of this room --- */

/* The parent in a report of fork-with-context (parent.c): its first call that worked, and the fork.
 * A child that begins has a parent from then on, which `used` the driver or not. */
void gps_parent_watch_forks(void);
void gps_parent_note_first(void);
void gps_parent_begin(bool used);

/* Called in a forked child before it begins: every module resets the parent's state. */
void gps_fork_reset(void);
/* Whether this process, or the one that it was forked from, has initialised the driver. */
bool gps_exit_registered(void);
