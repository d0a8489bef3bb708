/*
 * ownership.h - whose an entry of regions/ or names/ is, and how an orphan goes.
 *
 * An entry belongs to its holder for as long as the holder lives; nobody else touches it. An orphan
 * may be removed by anyone, and only here: under a lock on its name that the kernel drops when its
 * taker dies, and after a second look. Taking over is then no more than removing the orphan and
 * creating one's own exclusively. So a process that is killed or stopped at any point leaves either
 * the orphan or nothing, and two can never both take one name. (Swapping links in and out with
 * RENAME_EXCHANGE needs no lock, but who is killed before swapping back has taken a live process's
 * name.)
 *
 * A VMM region belongs to its keeper. When that dies, the processes that hold the region stand in
 * for it: record and name stay as they are until the next keeper has adopted them.
 *
 * The lock is one byte of <namespace>/lock. Nobody waits for it: who has it is about to be done, or
 * is stopped, and then the entry counts as taken.
 */
#ifndef GPS_OWNERSHIP_H
#define GPS_OWNERSHIP_H

#include "file.h"

/* Of what lies beside a record: see gps_region_take, and struct gps_region_hashes. */
#define GPS_TAKEN_SUFFIX  ".taken"
#define GPS_HASHES_SUFFIX ".hashes"

/* <store>/regions/<id><suffix>: of the record where the suffix is "". */
void gps_region_path(const struct gps_store *store, const struct gps_id *id, const char *suffix,
                     char path[GPS_FILE_PATH]);

#define GPS_OWNERSHIP_TRIES                                                                        \
    64 /* looks at an entry that others fight over, a sched_yield between them */

enum gps_ownership {
    GPS_OWNERSHIP_NONE = 0, /* no such entry */
    GPS_OWNERSHIP_HELD = 1,
    GPS_OWNERSHIP_ORPHAN = 2, /* its holder is dead, or it is nothing of ours */
};

/* Judges entry `name` of the directory `at`: an enum gps_ownership, or -errno when it cannot be
 * known (which is never a reason to touch it). *holder: who holds it, all 0 where that cannot be
 * said. */
typedef int gps_ownership_fn(const struct gps_store *store, int at, const char *name,
                             struct gps_owner *holder);
gps_ownership_fn gps_region_ownership;
gps_ownership_fn gps_name_ownership;

/* gps_region_ownership, but a VMM record whose keeper is dead is an orphan even while live
 * processes hold the region. They wait for the next keeper to adopt it, who alone asks this way. */
gps_ownership_fn gps_region_keeper_ownership;

/* Removes the entry if it is an orphan: 1 removed, 0 it is none (any more), -EAGAIN another process
 * is at it, or -errno. */
int gps_ownership_clear(const struct gps_store *store, int at, const char *name,
                        gps_ownership_fn *judge);

/* Renames `temp` over the entry if that is an orphan: 1 done, 0 it is none (any more), -EAGAIN and
 * -errno as above. */
int gps_ownership_succeed(const struct gps_store *store, int at, const char *temp, const char *name,
                          gps_ownership_fn *judge);

/* Removes the lock file, unless somebody holds a lock on it: nothing is left for it to guard. */
void gps_ownership_end(const struct gps_store *store);

#endif
