/*
 * defer.h - memory that the program has freed and other processes still hold.
 *
 * Owns those regions, and the reaper: a thread that starts with the first of them, sleeps on the
 * directory, frees in the driver what nobody holds any more, and ends when nothing is left. Results
 * (ready = free) wait here as well, for their first importer or the end of their hand-over time. At
 * the end of the process, or of a context, what is still exported is brought here to be settled.
 *
 * A region being freed by one thread is marked busy, so nobody else frees it, and stays in the list
 * until the driver has freed it: a second free by the program never reaches the driver. The list's
 * lock is not held across driver calls or I/O. Call inside a gps_scope where not said otherwise.
 */
#ifndef GPS_DEFER_H
#define GPS_DEFER_H

#include <signal.h>

#include "registry.h"

void gps_defer_add(struct gps_export *region);    /* freed while it is held; state CLOSING */
void gps_defer_result(struct gps_export *region); /* final: becomes FINAL, for its hand-over time */

/* Whether a pointer that the program has freed is still allocated, here. Needs no scope. */
bool gps_defer_has(uint64_t pointer);

/* The device is out of memory: frees what can be freed. True when something was. Needs no scope. */
bool gps_defer_relieve(void);

/* Waits until nobody holds the region, `nanos` at most. `signals`: see watch.h. */
void gps_defer_wait(const struct gps_export *region, uint64_t nanos, const sigset_t *signals);

/* The process ends: stops the reaper, hands over results, lingers, and reports what is still held.
 */
void gps_defer_exit(const sigset_t *signals);

/* The same waits for one context (0: all) that is about to go, and its memory with it. */
void gps_defer_settle(uint64_t context, const sigset_t *signals);
/* Keeps the reaper away from the context until gps_defer_context_done says whether the driver has
 * destroyed it. */
struct gps_export *gps_defer_context(uint64_t context);
void gps_defer_context_done(struct gps_export *regions, bool gone);

/* The very end: removes our records, but for those that others may ask about, unless we are the
 * last. */
void gps_defer_unpublish(bool last);

void gps_defer_reset(void); /* in a forked child */

#endif
