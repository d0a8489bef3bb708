/*
 * references.h - what this process holds open of others', as it publishes it.
 *
 * Owns the slots of our file in procs/ and their lock. An opening begins with an intent, which
 * counts as holding already, and is committed after the driver's open. Nothing here fails the
 * program's call: what cannot be published is reported once. Call inside a gps_scope.
 */
#ifndef GPS_REFERENCES_H
#define GPS_REFERENCES_H

#include "directory/record.h"
#include "log/log.h"

#define GPS_NO_SLOT UINT32_MAX

/* Publishes the intent to open the region (or event): the number of its slot, or GPS_NO_SLOT. */
unsigned gps_references_begin(const struct gps_id *id, enum gps_slot_via via);
void gps_references_commit(unsigned slot, const struct gps_id *id, enum gps_slot_via via,
                           uint64_t address, uint64_t generation);
/* Closed, or never opened. */
void gps_references_end(unsigned slot);

/* Which other processes hold a region (or event) now and since when: their number, and the first
 * `max` of them. */
unsigned gps_references_users(const struct gps_id *id, struct gps_party *users, unsigned max);

void gps_references_reset(void); /* in a forked child */

#endif
