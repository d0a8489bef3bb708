/*
 * leader_lock.h - who keeps: the lock that makes one process of a namespace its keeper.
 *
 * An OFD lock on keeper.lock, which the kernel drops with its holder. The keeper's socket and the
 * lock's own file go while the lock is held, so nobody removes what belongs to a live keeper; who
 * had the removed file open meanwhile finds that out and takes the next.
 */
#ifndef GPS_LEADER_LOCK_H
#define GPS_LEADER_LOCK_H

#include "store.h"

/* *fd holds the lock until it is closed. -EAGAIN: another process has it, or is just letting go. */
int gps_leader_lock_take(const struct gps_store *store, int *fd);

/* Whether the lock still is the one that others find: not when its directory was removed, or
 * replaced by another. */
bool gps_leader_lock_holds(const struct gps_store *store, int fd);

/* Removes socket and lock, then lets go. */
void gps_leader_lock_end(const struct gps_store *store, int fd);

/* Removes what a keeper that died left of them: the number of files, or -errno. With dry_run it
 * only counts. */
int gps_leader_lock_clear(const struct gps_store *store, bool dry_run);

#endif
