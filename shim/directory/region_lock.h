/*
 * region_lock.h - the lock by which the owner of a region learns at once that nobody has it open.
 *
 * Where there are many processes a record says so (`locked`), and a process that opens the
 * region holds a shared open file description lock on it, from before it reads the record's state
 * until its slot is cleared. The owner marks the region closing and then asks for the lock: where
 * nobody has it, procs/ need not be scanned. A lock costs an open and its close 7 us, and a
 * scan 1.5 us for each process. The kernel drops it with the process. As with a lease a mapping
 * holds it, no descriptor (lease.h). Who cannot have one makes the directory <namespace>/unlocked,
 * for which it needs no descriptor. That is never removed, and while it is there every region
 * counts as locked.
 *
 * Errors, threads and memory are as in store.h.
 */
#pragma once

#include "lease.h"

struct gps_region_lock {
    void *mapping; /* NULL: none is asked for, or "unlocked" stands for it */
    int status;    /* 0, or -errno: the owner learns nothing of this process */
};

/* Locks a record that asks for it, for the process of this lease, and reads it as gps_region_read
 * does, whose status it returns. */
int gps_region_lock_and_read(const struct gps_lease *lease, const struct gps_id *id,
                             struct gps_region_record *record, const char **why,
                             struct gps_region_lock *lock);
/* Also of NULL. */
void gps_region_unlock(void *mapping);
/* This process has a region open without its lock. */
int gps_region_go_unlocked(const struct gps_store *store);

/* False: no process has the lock. True: one has it, perhaps this one, or that is not known. */
bool gps_region_may_be_locked(const struct gps_store *store, const struct gps_id *id);
