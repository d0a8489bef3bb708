/*
 * keeper_state.h - the state of the keeper's process.
 *
 * One thread runs a loop around poll, and never waits for a peer. leadership.c makes this process
 * the one keeper, with the socket and the lease; connections.c answers one request for each
 * connection; region_list.h has the regions.
 */
#pragma once

#include "directory/lease.h"
#include "metrics_job.h"
#include "region_list.h"

#define CONNECTIONS_MAX 256 /* further ones wait in the socket's queue */
#define KEEPER_NEVER    UINT64_MAX

struct connection {
    int fd;
    uint64_t since;
};

struct keeper {
    struct gps_store store;
    struct gps_lease lease;
    int lock, listener;
    struct region_list regions;
    struct connection connections[CONNECTIONS_MAX]; /* the oldest first */
    size_t connection_count;
    uint64_t accept_after; /* while descriptors are lacking: nothing is accepted before then */
    uint64_t sweep_at;     /* KEEPER_NEVER: nothing calls for one */
    uint64_t now;          /* CLOCK_MONOTONIC, as of the last wake-up */
    struct metrics_job metrics;
    int signals, changes; /* -1: no inotify; then a sweep a second finds the changes */
    uint64_t idle;        /* it ends after so long with nothing to keep */
    uint64_t idle_since;
    uint64_t not_before; /* the next sweep */
    unsigned others;     /* live processes, as of the last sweep */
    bool ending;
    bool evicted; /* the store was removed or replaced */
};

/* --- connections.c --- */

void connections_accept(struct keeper *keeper);
/* Replies on connection `at`, which has become readable or was closed, and ends it. */
void connections_serve(struct keeper *keeper, size_t at);
/* Ends the connections on which no request came in time. */
void connections_expire(struct keeper *keeper);
/* The time at which connections_expire has something to do. */
uint64_t connections_expiry(const struct keeper *keeper);

/* --- leadership.c: the right to be the one keeper of a store --- */

/* Becomes the keeper of the store. 0 or -errno; -EEXIST: there is another one, *other (pid 0: it
 * does not answer). */
int leadership_take(struct keeper *keeper, struct gps_owner *other);
/* Drops all regions, and leaves nothing behind. */
void leadership_end(struct keeper *keeper);
