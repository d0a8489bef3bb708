/*
 * usage.h - how much GPU memory processes use, sorted, and totals.
 *
 * Joins the directory with what the driver says and with the findings in logs.
 */
#pragma once

#include "cli/json_tree.h"
#include "directory/accounting.h"
#include "directory/view.h"
#include "log_tail.h"

struct usage_process {
    struct account account; /* of all GPUs */
    uint64_t driver;        /* what the driver says, with all of what the process exports */
    uint64_t fair;          /* that, with memory that is shared split among its holders */
};
#define USAGE_UNKNOWN UINT64_MAX

enum usage_key {
    USAGE_PROPORTIONAL,
    USAGE_OWN,
    USAGE_SHARED,
    USAGE_SAVED,
    USAGE_DRIVER,
    USAGE_NAME,
    USAGE_PID,
    USAGE_KEYS
};
struct usage_order {
    enum usage_key key;
    bool reverse;
};
/* "proportional"; sorts by bytes are from the largest down. */
extern const char *const usage_keys[USAGE_KEYS];

/* The whole frames between two looks, per second. */
struct usage_rate {
    double frames, left_out; /* negative: there was no earlier look */
};

struct usage_frames {
    const struct view_region *region;
    struct view_frames now;
    struct usage_rate rate;                            /* the exporter's */
    struct usage_rate readers[GPS_FRAMES_READERS_MAX]; /* as in `now` */
};

struct usage {
    struct view view;
    struct accounting accounting;
    struct usage_process *processes;
    size_t process_count;
    struct usage_frames *frames; /* of the regions that have them, as in the view */
    size_t frames_count;
    bool driver; /* libnvidia-ml is there and works */
    struct log_tail tail;
};

/* The logs are log_tail_begin's. */
void usage_begin(struct usage *usage, char *const *logs, size_t log_count);
/* Reads everything anew; rates are those since it was called before. False after an error message:
 * there is what could be read. */
bool usage_read(struct usage *usage);
void usage_sort(struct usage *usage, struct usage_order order);
void usage_end(struct usage *usage);

/* Those of the region, or NULL. */
const struct usage_frames *usage_frames_of(const struct usage *usage,
                                           const struct view_region *region);

/* --- usage_json.c --- */

/* What `top --json` prints, and what the metrics are read from. */
json_t *usage_json(const struct usage *usage);
