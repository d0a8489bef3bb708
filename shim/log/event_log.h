/*
 * event_log.h - the log of what happens to regions: one line of JSON for each event.
 *
 * docs/event.schema.json describes a line. A line is formatted on the stack and written with one
 * write, so lines of different threads and processes never mix. No lock, no malloc, and nothing
 * waits. The descriptor stays open, close-on-exec, and is checked by device and inode before each
 * write, because programs close descriptors that are not theirs. After a failed write one message
 * goes to stderr, and no further event is written. Safe from any thread, inside a gps_scope.
 */
#pragma once

#include "config/config.h"

struct gps_event_line {
    const char *what; /* "created", or another event that the schema lists */
    uint64_t time;    /* 0: now. A member below that is 0 or NULL does not appear in the line */
    const struct gps_id *region;
    const char *name;
    uint64_t size;                   /* "made": all the VMM memory that the program has there */
    uint64_t saved;                  /* "merged": the bytes that another process held already */
    uint64_t ns;                     /* "waited": the time that the wait took */
    const uint8_t *device;           /* its UUID; "made": that of the GPU */
    const char *how;                 /* one of the words that the schema lists */
    const struct gps_report *report; /* "finding" */
    const char *arguments;           /* "began" */
};

/* Is called at the first call, and again in a forked child. No event is written before. The
 * arguments stay the caller's. */
void gps_event_log_open(const struct gps_options *options, const struct gps_owner *self,
                        const char *arguments);

/* Writes one event; before the first one an event that tells the program's arguments. Costs one
 * load if event_log is off. Preserves errno. */
void gps_event_log_write(const struct gps_event_line *line);
