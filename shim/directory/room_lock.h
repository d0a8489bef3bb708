/*
 * room_lock.h - the lock of a GPU's room: one process of a user comes back to it at a time.
 *
 * A process that comes back counts the free bytes, and uses them later. The lock is an OFD lock on
 * <root>/.room-<UUID>, so that it holds for all namespaces, and the file names its holder. As with
 * a lease a mapping holds it where that can be: a program may close all descriptors. The kernel
 * drops the lock with its holder. The file stays.
 *
 * Errors, threads and memory are as in store.h.
 */
#pragma once

#include "gpushare/region.h"
#include "store.h"

/* All zero: the lock is not held. */
struct gps_room_lock {
    bool held;
    void *mapping; /* NULL: the descriptor holds it */
    int fd;
};

/* `by_descriptor`: a mapping would not hold the lock. 0 or -errno. -EAGAIN: another process has it,
 * which *holder describes; zeros: that has not written its name yet. */
int gps_room_lock_take(const struct gps_store *store, const uint8_t device[GPS_UUID_BYTES],
                       const struct gps_owner *self, bool by_descriptor, struct gps_room_lock *lock,
                       struct gps_owner *holder);
void gps_room_lock_give(struct gps_room_lock *lock);
/* In a forked child, which has the descriptor, and no mapping. */
void gps_room_lock_forget(struct gps_room_lock *lock);
