/*
 * event_log.h - the event log: what happens to regions, one line of JSON an event.
 *
 * docs/event.schema.json describes a line. A line is formatted on the stack and written with one
 * write, so lines of different threads and processes never mix. No lock, no malloc, and nothing
 * waits. The descriptor stays open, close-on-exec, and is checked by device and inode before each
 * write, because programs close descriptors that are not theirs. What cannot be written is lost:
 * one message on stderr says so, and no event is written after it. Any thread, inside a gps_scope.
 */
#pragma once

#include "config/config.h"

enum gps_event_kind {
    GPS_LOGGED_CREATED,
    GPS_LOGGED_EXPORTED,
    GPS_LOGGED_OPENED,
    GPS_LOGGED_CACHED,
    GPS_LOGGED_CLOSED,
    GPS_LOGGED_FREED,
    GPS_LOGGED_WAITED,
    GPS_LOGGED_MERGED,
    GPS_LOGGED_UNMERGED,
    GPS_LOGGED_FINDING,
    GPS_LOGGED_ENDED,
    GPS_LOGGED_FULL,
};

struct gps_event_line {
    enum gps_event_kind what;
    uint64_t time; /* 0: now; no member of the line stands for a 0 or NULL below */
    const struct gps_id *region;
    const char *name;
    uint64_t size;
    uint64_t saved;                  /* MERGED: so much of the size was there already */
    uint64_t ns;                     /* WAITED: for so long */
    const uint8_t *device;           /* its UUID */
    const char *how;                 /* of the words of the schema */
    const struct gps_report *report; /* FINDING */
};

/* At the first call, and in a forked child again. Nothing is written before. */
void gps_event_log_open(const struct gps_options *options, const struct gps_owner *self);

/* Costs a load where event_log is off. errno is preserved. */
void gps_event_log_write(const struct gps_event_line *line);
