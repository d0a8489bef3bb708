/*
 * name.h - the names of regions: symbolic links in names/ of the published directory.
 *
 * A name points to a region, or to the process that has claimed it and has no region yet. Errors,
 * threads and memory are as in store.h. No function waits for another process.
 */
#pragma once

#include "store.h"

enum gps_name_kind { GPS_NAME_CLAIM = 1, GPS_NAME_REGION = 2 };

struct gps_name_target {
    enum gps_name_kind kind;
    struct gps_owner claimer; /* CLAIM: pid_ns, pid, start, nonce */
    struct gps_id region;     /* REGION */
};

/* Reads and checks the link, without following it. -ENOENT. -EBADMSG: not a link of gpushare's.
 * -EINVAL: not a valid name. */
int gps_name_resolve(const struct gps_store *store, const char *name,
                     struct gps_name_target *target);

/* Claims a name for this process, which has no region yet (names/<name> -> ../procs/<self>). The
 * process must hold its lease. -EEXIST: a live process holds the name, perhaps this one; *holder
 * (if holder is not NULL) says which, with pid 0 for a process that is taking it at this moment.
 *
 * A claim is held while its process lives. The name of a region is held while the region has this
 * name, is not freed and its owner lives; for a VMM region whose keeper is dead, while live
 * processes have it open. Any other link is an orphan, and the claim replaces it. */
int gps_name_claim(const struct gps_store *store, const char *name, const struct gps_owner *self,
                   struct gps_owner *holder);

/* Points a claimed name at the claimer's region, by an atomic rename of a file of this process.
 * -ENOENT: the region is not published, or the claim is missing. -EINVAL: the region has another
 * name. -EEXIST: neither the region's owner nor, for a VMM region, its creator holds the name. */
int gps_name_point(const struct gps_store *store, const char *name, const struct gps_owner *self,
                   const struct gps_id *region);

/* Removes the name if it is this process's claim or names its region (`region` may be NULL for a
 * claim). 0 also if it was neither. The name of a VMM region belongs to its keeper. */
int gps_name_release(const struct gps_store *store, const char *name, const struct gps_owner *self,
                     const struct gps_id *region);
