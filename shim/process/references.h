/*
 * references.h - the open references: which regions a process has open, as published.
 *
 * Owns the slots of this process's file in procs/ and their lock. An opening begins with an intent,
 * which counts as a reference already, and is committed after the driver's open. Functions return 0
 * or -errno; the program's call goes on in any case, and the caller reports the failure. Any
 * thread; inside a gps_scope.
 */
#pragma once

#include <stdbool.h>

#include "directory/processes.h"
#include "directory/record.h"
#include "log/log.h"

#define GPS_NO_SLOT        UINT32_MAX
#define GPS_USERS_REPORTED 16 /* a report names at most this many users of a region */

/* Publishes the intent to open the region (or event). *slot is its number, GPS_NO_SLOT after a
 * failure to join the directory. */
int gps_references_begin(const struct gps_id *id, enum gps_slot_via via, unsigned *slot);
/* The same for a merged block, or a slot that stands for no region: a process that frees a region
 * does not read it (GPS_VIA_DIVIDER). */
int gps_references_begin_block(const struct gps_id *id, enum gps_slot_via via, unsigned *slot);
/* `place`: that of the open (gps_slot.place), or 0. */
int gps_references_commit(unsigned slot, const struct gps_id *id, enum gps_slot_via via,
                          uint64_t address, uint64_t generation, uint64_t place);
/* Writes a committed reference anew. `ask` is called under the slots' lock and gives its present
 * state, so the last of several writers at a time is right. It returns false where the slot need
 * not be written. 1: written, 0: not, or -errno. */
int gps_references_rewrite(bool (*ask)(uint64_t address, unsigned *slot, struct gps_slot *now),
                           uint64_t address);
/* The slot has the lock of its region's record (region_lock.h) until it ends. False: there are too
 * many locks, or there is no memory, and the caller keeps the lock. */
bool gps_references_keep_lock(unsigned slot, void *lock);
/* Publishes what this process waits for. 0 and the slot, or -errno. */
int gps_references_wait(const struct gps_wait_slot *wait, unsigned *slot);
/* Publishes that audit/ lacks events of this process. -ENODEV: it has not joined. */
int gps_references_set_untold(void);
/* The reference is closed, or was never opened. */
int gps_references_end(unsigned slot);

/* The other processes that have a region (or event) open now, and since when: their number and the
 * first `max` of them, or -errno: they are not known. *caches (if it is not NULL) is how many only
 * cache the region. */
int gps_references_users(const struct gps_id *id, struct gps_party *users, unsigned max,
                         unsigned *caches);

/* Whether the last look found too many processes to look at for each free. */
bool gps_references_crowded(void);
