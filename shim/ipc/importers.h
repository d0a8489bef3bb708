/*
 * importers.h - the other processes that have a region of ours open.
 *
 * The directory is read anew each time. Owns the list of processes that did not let go of what they
 * cache when they were asked to. Needs a joined directory; inside a gps_scope. Any thread.
 */
#pragma once

#include "directory/processes.h"
#include "log/log.h"
#include "registry/registry.h"

/* The number of importers and the first `max` of them, or -errno: it is not known. */
int gps_importers_of(const struct gps_export *region, struct gps_party *users, unsigned max);
/* Whether there is an importer. A region of which that is not known counts as held. */
bool gps_importers_any(const struct gps_export *region);

/* The same, and the processes that only cache it. */
int gps_importers_and_cache_holders(const struct gps_export *region, struct gps_party *users,
                                    unsigned max, struct gps_cache_holders *holders);

/* Returns when there is no importer, or after `nanos`. */
void gps_importers_wait(const struct gps_export *region, uint64_t nanos);
/* The region is closing: returns when no process caches it, which is how they learn of it, or after
 * 5 ms. A process that has been waited for in vain is not waited for again, until the region that
 * it was asked for then is freed. */
void gps_importers_let_go(const struct gps_export *region);
void gps_importers_freed(const struct gps_export *region);

/* Sets `held`, `cached` and `claimed` of every region in the list (linked by `work`), by one pass
 * over the directory. Where it cannot be read, or what one process holds, every region counts as
 * held: better late than pulled away. */
void gps_importers_mark(struct gps_export *work);

void gps_importers_reset(void); /* in a forked child */
