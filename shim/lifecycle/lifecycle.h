/*
 * lifecycle.h - the lifecycle of gpushare in this process: its first call, forks, its end.
 *
 * Nothing happens until the program makes its first CUDA call; then the configuration is read and
 * the process gets its identity (start.c). A forked child forgets all of it (fork.c) and starts
 * anew with its own first call.
 *
 * The end has two parts (exit.c). The exit handler runs before the driver is torn down: it is
 * registered after cuInit. It waits for importers where the configuration says so, and reports the
 * memory that others still hold. The library's destructor runs last: it removes what this process
 * published and writes the summary. A process that ends with _exit gets both from its hook, one
 * that ends with quick_exit from a handler that runs after the program's. One that a signal ends
 * gets neither, and the kernel drops its lease.
 */
#pragma once

#include <stdbool.h>

/* The process's first call. `attach` finds the driver: where there is none, the process stays as it
 * is. True when gpushare acts from now on. Any thread. */
bool gps_lifecycle_begin(bool (*attach)(void));

/* cuInit succeeded: from now on the process's exit is ours to see, before the driver's teardown. */
void gps_lifecycle_driver_ready(void);

/* A call answered "not initialized", inside of it: reports that where this process was forked from
 * one that had initialised the driver. */
void gps_lifecycle_not_initialized(void);

/* Both parts of the end, once, when nothing of the program's runs any more on this thread: for the
 * hooks of _exit and its like. No call that another thread begins meanwhile comes back: what it
 * asks about may be withdrawn already. Nor does another thread's end. */
void gps_lifecycle_end(void);
/* Such a call, or one that was refused meanwhile: returns in another phase of the process only. */
void gps_lifecycle_stay(void);

/* --- between the files of this room --- */

/* In a forked child, before it begins: every module forgets what the parent had. */
void gps_fork_reset(void);
/* The process that this one was forked from had initialised the driver, or not. */
bool gps_exit_registered(void);
