/*
 * importers.h - the other processes that have a region of ours open.
 *
 * The directory is read anew each time. Needs a joined directory; inside a gps_scope. Any thread.
 */
#pragma once

#include "log/log.h"
#include "registry/registry.h"

/* The number of importers and the first `max` of them, or -errno: they are not known. */
int gps_importers_of(const struct gps_export *region, struct gps_party *users, unsigned max);
/* Whether there is an importer. A region is held if that is unknown (in `users` not in audits). */
bool gps_importers_any(const struct gps_export *region);

/* The same as gps_importers_of, and in region->users whether there are importers and whether other
 * processes only cache the region. */
int gps_importers_find(struct gps_export *region, struct gps_party *users, unsigned max);

/* Returns when there is no importer, or after `nanos`. */
void gps_importers_wait(const struct gps_export *region, uint64_t nanos);
/* The region is closing: returns when no process caches it, which is how they learn of it, or after
 * 5 ms. After a wait that was too short no free waits for a second: a process may be stopped. */
void gps_importers_wait_for_caches(const struct gps_export *region);

/* Sets `users` of every region in the list (linked by `work`), by one scan of the directory. Where
 * the directory cannot be read, or the file of one process, every region counts as held: a late
 * free is better than one under an importer. In an audit, which frees nothing, none does. */
void gps_importers_mark(struct gps_export *work);
