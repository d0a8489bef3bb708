/*
 * leader_lock.h - the keeper's leader lock: it makes one process of a namespace the keeper.
 *
 * The lock is an OFD lock on keeper.lock, which the kernel drops when its holder dies. The keeper's
 * socket and the lock file are removed only while the lock is held, so the files of a live keeper
 * are never removed. A process that had the removed lock file open notices that and opens the new
 * one. Functions return 0 or -errno and may be called from any thread.
 */
#pragma once

#include "store.h"

/* A descriptor that holds the lock until closed, or -errno. -EAGAIN: another has or releases it. */
int gps_leader_lock_take(const struct gps_store *store);

/* When its holder took the lock (CLOCK_REALTIME, some milliseconds early); 0: none holds it. */
uint64_t gps_leader_lock_since(const struct gps_store *store);

/* Whether fd locks the file that others find: not if the directory was removed or replaced. */
bool gps_leader_lock_holds(const struct gps_store *store, int fd);

/* Removes the socket and the lock file, then releases the lock. */
void gps_leader_lock_end(const struct gps_store *store, int fd);

/* Removes the socket and the lock file of a dead keeper. Returns the number of files, or -errno.
 * With dry_run it only counts. */
int gps_leader_lock_clear(const struct gps_store *store, bool dry_run);
