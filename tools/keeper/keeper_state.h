/*
 * keeper_state.h - the state of the keeper's process.
 *
 * One thread runs a loop around poll, and never waits for a peer except the keeper that replaces
 * it. leadership.c makes this process the one keeper, with the socket and the lease; connections.c
 * answers one request for each connection; region_list.h has the regions; standby.c has a second
 * process ready, which goes on when this one is killed; replacement.c hands everything to another
 * keeper, and records which of them serves.
 */
#pragma once

#include "directory/lease.h"
#include "gpushare/keeper.h"
#include "region_list.h"

#define CONNECTIONS_MAX 256 /* further connections wait in the socket's queue */
#define KEEPER_NEVER    UINT64_MAX

/* Descriptors that were sent and not received yet: the kernel counts those of all processes of the
 * user. While that many are on their way, no request is read. */
#define GIVEN_MAX 64

struct connection {
    int fd;
    uint64_t since;
    bool given; /* a descriptor was sent; the peer has received it when it hangs up */
};

/* Metrics, written each time by a process of its own, so that the keeper never waits for a file. */
struct metrics_job {
    char *file;           /* absolute; NULL: no metrics are written */
    char *home;           /* where the keeper was started */
    uint64_t every, next; /* CLOCK_MONOTONIC */
    pid_t writer;         /* 0: no writer runs */
};

struct keeper {
    /* shared with a stand-by, or constant: */
    struct gps_store store;
    struct gps_lease lease;
    int lock, listener;
    int signals, changes; /* -1: no inotify; then a sweep a second finds the changes */
    struct region_list regions;
    uint64_t idle; /* the keeper ends after so long with nothing to keep */
    struct metrics_job metrics;
    struct gps_id family; /* drawn at random: this process, its stand-by, and theirs */

    struct connection connections[CONNECTIONS_MAX]; /* the oldest first */
    size_t connection_count;
    unsigned given_count;
    uint64_t accept_after; /* while descriptors are lacking: accepts no connection before then */
    uint64_t sweep_at;     /* KEEPER_NEVER: no sweep is needed */
    uint64_t now;          /* CLOCK_MONOTONIC, as of the last wake-up */
    uint64_t idle_since;
    uint64_t not_before;    /* the next sweep */
    struct gps_owner self;  /* this process; the records may name another (regions.self) */
    unsigned others;        /* live processes, as of the last sweep */
    pid_t standby;          /* 0: there is none */
    uint64_t standby_since; /* when it was started, or could not be */
    bool told;              /* a signal told it to end; it stays while a process is suspended */
    bool stays;             /* it has reported that it stays */
    bool ending;
    bool evicted;  /* the store was removed or replaced */
    bool replaced; /* another process serves now, with all our regions */
};

/* --- connections.c --- */

/* Whether no connection is accepted. */
bool connections_full(const struct keeper *keeper);
/* Whether the keeper waits for data on connection `at` now. */
bool connections_waited_for(const struct keeper *keeper, size_t at);
void connections_accept(struct keeper *keeper);
/* Replies on connection `at`, which has become readable or was closed, and ends it. */
void connections_serve(struct keeper *keeper, size_t at);
/* Ends the connections on which no request came in time. */
void connections_expire(struct keeper *keeper);
/* The time at which connections_expire has something to do. */
uint64_t connections_expiry(const struct keeper *keeper);

/* --- replacement.c: which process serves --- */

void incumbent_begin(struct keeper *keeper);
/* Publishes that this process serves, and its stand-by. */
void incumbent_publish(struct keeper *keeper);
/* Whether a process of this family was the last to publish that. */
bool incumbent_is_ours(const struct keeper *keeper);

/* --- leadership.c: the right to be the one keeper of a store --- */

/* Becomes the store's keeper. 0 or -errno; -EEXIST: *other is it (pid 0: it does not answer). */
int leadership_take(struct keeper *keeper, bool replace, struct gps_owner *other);
/* Drops all regions, and removes all files. */
void leadership_end(struct keeper *keeper);

/* --- standby.c --- */

/* The signals that keeper and stand-by wait for. They are blocked. */
void standby_signals(sigset_t *signals);
/* Starts a stand-by if there is none. The stand-by returns from this when it serves. */
void standby_turn(struct keeper *keeper);
/* The time at which standby_turn has something to do. */
uint64_t standby_due(const struct keeper *keeper);
/* Ends the stand-by, also a stopped one. */
void standby_end(struct keeper *keeper);

/* --- replacement.c --- */

/* Gives everything to the sender of a valid request to replace this keeper. 0: the sender serves
 * from now on, and keeper->replaced is set. -EAGAIN: the sender lacks a region that was deposited.
 * Else -errno. Waits GPS_KEEPER_HANDSHAKE at most. */
int replacement_give(struct keeper *keeper, const struct gps_keeper_request *request, int fd);
/* Takes everything from the keeper that answers now. 0 or -errno. */
int replacement_take(struct keeper *keeper);
