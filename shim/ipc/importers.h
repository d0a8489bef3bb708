/*
 * importers.h - the other processes that have a region of ours open.
 *
 * The directory is read anew each time. Needs a joined directory; inside a gps_scope. Any thread.
 */
#pragma once

#include "log/log.h"
#include "registry/registry.h"

/* The number of importers and the first `max` of them, or -errno: it is not known. */
int gps_importers_of(const struct gps_export *region, struct gps_party *users, unsigned max);
/* Whether there is an importer. A region of which that is not known counts as held. */
bool gps_importers_any(const struct gps_export *region);

/* Sets `held` and `claimed` of every region in the list (linked by `work`), by one pass over the
 * directory. Where it cannot be read, every region counts as held: better late than pulled away. */
void gps_importers_mark(struct gps_export *work);
