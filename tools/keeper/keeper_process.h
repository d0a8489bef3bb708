/*
 * keeper_process.h - the keeper's process: what its parts share.
 *
 * One thread around poll, and nothing in it waits for a peer. home: being the one keeper, the
 * socket and the lease. connections: connections, a request each. kept: the regions.
 */
#ifndef KEEPER_PROCESS_H
#define KEEPER_PROCESS_H

#include "directory/lease.h"
#include "kept_regions.h"
#include "util/clock.h"

#define CONNECTIONS_MAX 256 /* connected at once; the others wait in the socket's queue */
#define KEEPER_NEVER    UINT64_MAX

struct connection {
    int fd;
    uint64_t since;
};

struct keeper {
    struct gps_store store;
    struct gps_lease lease;
    int lock, listener;
    struct kept_regions kept;
    struct connection connections[CONNECTIONS_MAX]; /* the oldest first */
    size_t connection_count;
    uint64_t accept_after; /* out of descriptors: not before then */
    uint64_t sweep_at;     /* KEEPER_NEVER: no reason to */
    uint64_t now;          /* CLOCK_MONOTONIC, as of the last wake-up */
};

/* Not later than `when`. */
void keeper_sweep_by(struct keeper *keeper, uint64_t when);

/* --- home --- */

/* Becomes the keeper of the store. 0 or -errno; -EEXIST: another one is, *other says which (pid 0:
 * it does not say). */
int leadership_take(struct keeper *keeper, struct gps_owner *other);
/* Drops what is kept, and leaves nothing behind. */
void leadership_end(struct keeper *keeper);

/* --- connections --- */

void connections_accept(struct keeper *keeper);
/* Something came from client `at`, or it hung up: answers, and ends the connection. */
void connections_serve(struct keeper *keeper, size_t at);
/* Ends the connections of those who say nothing. */
void connections_expire(struct keeper *keeper);
/* When connections_expire has something to do. */
uint64_t connections_expiry(const struct keeper *keeper);

#endif
