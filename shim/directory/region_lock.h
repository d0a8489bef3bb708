/*
 * region_lock.h - the lock by which a region's owner learns at once that no process has it open.
 *
 * Where there are many processes a record says so (`locked`), and a process that opens the
 * region holds a shared open file description lock on it, from before it reads the record's state
 * until its slot is cleared. The owner marks the region closing and then looks at the lock: where
 * no process has it, procs/ need not be scanned. A lock costs an open and its close 7 us, and a
 * scan 1.5 us for each process. The kernel drops the lock with the process. As with a lease a
 * mapping holds it, no descriptor (lease.h). A process that cannot have a mapping makes the
 * directory <namespace>/unlocked, for which it needs no descriptor. That directory is never
 * removed, and while it is there every region counts as locked.
 *
 * Errors, threads and memory are as in store.h.
 */
#pragma once

#include "lease.h"

struct gps_region_lock {
    void *mapping; /* NULL: the record wants no lock, or "unlocked" stands for it */
    int status;    /* 0, or -errno: the owner does not learn of this process */
};

/* Locks a record that wants a lock, for the process of this lease, and reads it as gps_region_read
 * does, whose status it returns. */
int gps_region_lock_and_read(const struct gps_lease *lease, const struct gps_id *id,
                             struct gps_region_record *record, const char **why,
                             struct gps_region_lock *lock);
/* `mapping` may be NULL. */
void gps_region_unlock(void *mapping);
/* This process has a region open without its lock. */
int gps_region_go_unlocked(const struct gps_store *store);

/* False: no process has the lock. True: one has it, perhaps this one, or that is not known. */
bool gps_region_may_be_locked(const struct gps_store *store, const struct gps_id *id);
