/*
 * tombstones.h - the regions of this process that were freed and whose records still stand in the
 * directory, so that a stale handle is known.
 *
 * The newest 1,024 are kept, in memory and by id: the driver can give the handle of a freed region
 * again, and no record has to be read to know it. The lock of record_claims.c guards them. Nothing
 * is allocated.
 */
#pragma once

#include "directory/record.h"

enum { GPS_TOMBSTONES = 1024 };

/* Adds a region that is not in the list. True: *oldest had to go for it. */
bool gps_tombstones_add(const struct gps_id *id, struct gps_id *oldest);
/* Removes a region: its record is another's now, or shall go. False: it is not in the list. */
bool gps_tombstones_take(const struct gps_id *id);
/* Returns the id at a place below GPS_TOMBSTONES; NULL where the place is empty. */
const struct gps_id *gps_tombstones_at(unsigned place);

void gps_tombstones_reset(void); /* in a forked child */
