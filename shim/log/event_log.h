/*
 * event_log.h - the log of events of regions: one line of JSON for each.
 *
 * docs/event.schema.json describes a line. A line is formatted on the stack and written with one
 * write, so lines of different threads and processes never mix. No lock, no malloc, and nothing
 * waits. The descriptor stays open, close-on-exec, and is checked by device and inode before each
 * write, because programs close descriptors that are not theirs. After a failed write one message
 * goes to stderr, and no further event is written. Safe from any thread, inside a gps_scope.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

struct gps_event_line {
    const char *what; /* "created", or another event that the schema lists */
    uint64_t time;    /* 0: now. A member below that is 0 or NULL does not appear in the line */
    const struct gps_id *region;
    const char *name;
    uint64_t size;                   /* "made": all the VMM memory that the program has there */
    uint64_t saved;                  /* "merged": the bytes that another process held already */
    uint64_t ns;                     /* "waited", "frames": the time that it took */
    const uint8_t *device;           /* its UUID; "made": that of the GPU */
    const char *how;                 /* one of the words that the schema lists */
    const struct gps_report *report; /* "finding" */
    const char *arguments;           /* "began" */
    uint64_t count, left_out;        /* "frames" */
};

/* Is called at the first call, and again in a forked child. No event is written before. The
 * arguments stay the caller's. */
void gps_event_log_open(const struct gps_options *options, const struct gps_owner *self,
                        const char *arguments);

/* Whether an event would be written: one load. For callers that count events before. */
bool gps_event_log_is_on(void);

/* Writes one event; before the first one an event that tells the program's arguments. Costs one
 * load if event_log is off. Preserves errno. */
void gps_event_log_write(const struct gps_event_line *line);

/* --- bytes that become merged, or private again --- */

/* Each block is counted, from any thread and under any lock. gps_merged_sum_log writes the sums
 * since the last time as one event, after each swap or once a second. `saved`: the bytes that
 * another process held already, so that this process freed its own. */
void gps_merged_sum_merged(uint64_t bytes, uint64_t saved);
/* The program wrote into the bytes, or freed them. */
void gps_merged_sum_private(uint64_t bytes);

/* From now on *most is the most bytes that were merged at a time. Called once, before the first. */
void gps_merged_sum_keep(uint64_t *most);

void gps_merged_sum_log(void); /* inside a gps_scope */
