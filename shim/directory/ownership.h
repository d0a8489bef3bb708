/*
 * ownership.h - the ownership of entries in regions/ and names/, and the removal of orphans.
 *
 * An entry belongs to its holder while the holder lives, and no other process touches it. Any
 * process may remove an orphan, but only through this module: it locks the entry's name and judges
 * the entry again. The kernel drops that lock if the process dies. Taking an entry over then means
 * to remove the orphan and create a new entry exclusively. So a process that is killed or stopped
 * at any point leaves either the orphan or nothing, and two processes can never both take one name.
 * (Exchanging links with RENAME_EXCHANGE would need no lock, but a process killed before it
 * exchanged them back would have taken the name of a live process.)
 *
 * A VMM region belongs to its keeper. While the keeper is dead, the processes that have the region
 * open stand in for it: record and name stay until the next keeper has adopted them.
 *
 * The lock is one byte of <namespace>/lock. No process waits for it: its holder is either about to
 * release it, or stopped, and the entry then counts as held. Errors and threads are as in store.h.
 */
#pragma once

#include "store.h"

/* How often an entry that others keep changing is judged, with a sched_yield in between. */
#define GPS_OWNERSHIP_TRIES 64

enum gps_ownership {
    GPS_OWNERSHIP_NONE = 0, /* no such entry */
    GPS_OWNERSHIP_HELD = 1,
    GPS_OWNERSHIP_ORPHAN = 2, /* its holder is dead, or it is not an entry of gpushare's */
};

/* Judges the entry `name` of the directory `at`: an enum gps_ownership, or -errno if that cannot be
 * known, in which case the entry must not be touched. *holder: the owner, or all 0 if unknown. */
typedef int gps_ownership_fn(const struct gps_store *store, int at, const char *name,
                             struct gps_owner *holder);
gps_ownership_fn gps_region_ownership;
gps_ownership_fn gps_name_ownership;

/* As gps_region_ownership, but a VMM record whose keeper is dead is an orphan even while live
 * processes have the region open. Only the next keeper judges so, to adopt the record. */
gps_ownership_fn gps_region_keeper_ownership;

/* Renames `temp` over the entry if the entry is an orphan, or removes the orphan if temp is NULL.
 * 1: done. 0: it is not an orphan. -EAGAIN: another process is working on it. Otherwise -errno. */
int gps_ownership_replace(const struct gps_store *store, int at, const char *temp, const char *name,
                          gps_ownership_fn *judge);

/* Replaces an entry that stands where another is wanted. 1: done. 0: it has changed or another
 * process is working on it, so the caller tries again. -EEXIST: *holder holds it. Or -errno. */
int gps_ownership_contest(const struct gps_store *store, int at, const char *temp, const char *name,
                          gps_ownership_fn *judge, struct gps_owner *holder);

/* Removes the lock file unless a process has it locked. For a directory without live processes. */
void gps_ownership_end(const struct gps_store *store);
