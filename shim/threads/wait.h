/*
 * wait.h - this process waits for others: after a second it says so, once, and publishes it.
 *
 * Own one on the stack, inside a gps_scope: begin it, take turns until what is waited for has come,
 * end it.
 */
#pragma once

#include "directory/record.h"
#include "watch.h"

struct gps_wait {
    enum gps_slot_via whom; /* GPS_VIA_WAIT_... */
    const char *name;       /* of the region; empty: it has none */
    const struct gps_id *id;
    uint64_t began; /* CLOCK_MONOTONIC */
    uint64_t most;  /* nanoseconds */
    bool said;
    struct gps_watch watch;
    unsigned slot;
};

/* `name` and `id` stay until the end; with a name id may be NULL. `what` is to be watched: enum
 * gps_watch_what. */
void gps_wait_begin(struct gps_wait *wait, enum gps_slot_via whom, const char *name,
                    const struct gps_id *id, uint64_t most, unsigned what);
/* Sleeps as gps_watch_wait does. */
void gps_wait_turn(struct gps_wait *wait, uint64_t nanos);
void gps_wait_end(struct gps_wait *wait);
