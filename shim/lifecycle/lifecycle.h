/*
 * lifecycle.h - the life of gpushare in this process: its first call, forks, its end.
 *
 * Nothing happens until the program makes its first CUDA call; then the configuration is read and
 * the process gets its identity. A forked child forgets all of it and starts anew with its own
 * first call: the page that says "started" is wiped by the kernel in the child (MADV_WIPEONFORK),
 * so that holds for children no atfork handler saw, too.
 *
 * The end has two parts. The exit handler runs before the driver is torn down (it is registered
 * after cuInit): it waits for importers where the configuration says so, and reports who still
 * holds what. The library's destructor runs last: it removes what this process published and writes
 * the summary. A process that ends with _exit gets both from its hook; one that a signal ends gets
 * neither, and the kernel drops its lease.
 */
#ifndef GPS_LIFECYCLE_H
#define GPS_LIFECYCLE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "config/config.h"
#include "directory/lease.h"

enum gps_life_state {
    GPS_LIFE_NEW = 0, /* no CUDA call yet in this process; also what a forked child finds */
    GPS_LIFE_ON,
    GPS_LIFE_OFF, /* mode = off, or a configuration that cannot be used */
    GPS_LIFE_ENDED,
};

struct gps_life_page {
    _Atomic int state;
    long lock[8]; /* a pthread_mutex_t; all zero is unlocked, which is what a child needs */
};
extern struct gps_life_page *_Atomic gps_life_page;

bool gps_life_begin(void);

/* Whether gpushare acts on this call. First thing in every wrapper; two loads once started. */
static inline bool gps_life_enter(void) {
    int state = atomic_load_explicit(
        &atomic_load_explicit(&gps_life_page, memory_order_acquire)->state, memory_order_acquire);
    return __builtin_expect(state == GPS_LIFE_ON, 1) || (state == GPS_LIFE_NEW && gps_life_begin());
}

/* cuInit succeeded: from now on the process's exit is ours to see, before the driver's teardown. */
void gps_life_driver_ready(void);

/* A call answered "not initialized", inside of it: reports that where this process was forked from
 * one that had initialised the driver. */
void gps_life_not_initialized(void);

/* True from the beginning of the process's exit: nothing is deferred any more. */
bool gps_life_exiting(void);

/* Both parts of the end, once; for the hooks of _exit and its kin. */
void gps_life_end(void);

/* Constant once gps_life_enter was true. */
const struct gps_config *gps_life_config(void);
const struct gps_owner *gps_life_self(void);

/* The published directory and this process's lease in it, taken at the first call of this; NULL
 * where that cannot be had, which was then reported once. */
struct gps_lease *gps_life_lease(void);
const struct gps_store *gps_life_store(void); /* NULL before gps_life_lease succeeded */

#endif
