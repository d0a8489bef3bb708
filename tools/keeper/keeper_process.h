/*
 * keeper_process.h - the keeper's process: what its parts share.
 *
 * One thread around poll, and nothing in it waits for a peer. home: being the one keeper, the
 * socket and the lease. clients: connections, a request each. kept: the regions.
 */
#ifndef KEEPER_PROCESS_H
#define KEEPER_PROCESS_H

#include "directory/lease.h"
#include "kept_regions.h"

#define KEEPER_CLIENTS 256 /* connected at once; the others wait in the socket's queue */
#define KEEPER_NEVER   UINT64_MAX
#define KEEPER_SECOND  UINT64_C(1000000000)

struct keeper_client {
    int fd;
    uint64_t since;
};

struct keeper {
    struct gps_store store;
    struct gps_lease lease;
    int lock, listener;
    struct kept_list kept;
    struct keeper_client clients[KEEPER_CLIENTS]; /* the oldest first */
    size_t client_count;
    uint64_t accept_after; /* out of descriptors: not before then */
    uint64_t sweep_at;     /* KEEPER_NEVER: no reason to */
    uint64_t now;          /* CLOCK_MONOTONIC, as of the last wake-up */
};

uint64_t keeper_clock(void);
/* Not later than `when`. */
void keeper_sweep_by(struct keeper *keeper, uint64_t when);

/* --- home --- */

/* Becomes the keeper of the store. 0 or -errno; -EEXIST: another one is, *other says which (pid 0:
 * it does not say). */
int keeper_home_enter(struct keeper *keeper, struct gps_owner *other);
/* Drops what is kept, and leaves nothing behind. */
void keeper_home_leave(struct keeper *keeper);

/* --- clients --- */

void keeper_accept(struct keeper *keeper);
/* Something came from client `at`, or it hung up: answers, and ends the connection. */
void keeper_serve(struct keeper *keeper, size_t at);
/* Ends the connections of those who say nothing. */
void keeper_expire(struct keeper *keeper);
/* When keeper_expire has something to do. */
uint64_t keeper_expiry(const struct keeper *keeper);

#endif
