/*
 * defer.h - memory that the program has freed and other processes still hold.
 *
 * Owns the reaper: a thread that starts with the first such region, sleeps on the directory, frees
 * in the driver what nobody holds any more, and ends when nothing is left. Results (ready = free)
 * wait in the same way for their first importer, or for the end of their hand-over time.
 *
 * Call inside a gps_scope where not said otherwise.
 */
#ifndef GPS_DEFER_H
#define GPS_DEFER_H

#include <signal.h>

#include "registry/registry.h"

/* Both take over a region that the caller has in waiting.h as busy: */
void gps_defer_add(struct gps_export *region);    /* freed while it is held; state CLOSING */
void gps_defer_result(struct gps_export *region); /* final: becomes FINAL, for its hand-over time */

/* The device is out of memory: frees what can be freed. True when it is worth another try. Needs no
 * scope. */
bool gps_defer_relieve(void);

/* Waits until nobody holds the region, `nanos` at most. `signals`: see watch.h. */
void gps_defer_wait(const struct gps_export *region, uint64_t nanos, const sigset_t *signals);

/* The process ends: the reaper touches the driver no more once this returns. */
void gps_defer_stop(void);

/* share-timeout: nobody came for a result. */
void gps_defer_report_unclaimed(const struct gps_export *region);

void gps_defer_reset(void); /* in a forked child */

#endif
