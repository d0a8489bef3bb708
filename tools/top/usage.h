/*
 * usage.h - who uses how much GPU memory: processes, sorted, and totals.
 *
 * Joins the directory with what the driver says and with the findings in logs.
 */
#pragma once

#include "cli/json_tree.h"
#include "directory/accounting.h"
#include "directory/view_frames.h"
#include "logs/follow.h"
#include "logs/logs.h"

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

/* --- log_tail.c: the findings that logs have, as they grow --- */

#define LOG_TAIL_KEPT 200 /* the latest findings */

/* How often a finding occurred. */
struct log_tail_count {
    char *id;
    enum gps_level level;
    uint64_t count;
};

struct log_tail {
    struct follow logs;
    struct log_line **findings; /* by time, the latest last */
    size_t finding_count;
    struct log_tail_count *counts; /* by id */
    size_t count_count;
};

/* How often the finding of a line occurred. */
static inline uint64_t log_tail_times(const struct log_line *line) {
    return line->count > 0 ? (uint64_t)line->count : 1;
}

/* Follows these files and directories (all *.jsonl in one), whose paths stay the caller's; without
 * any, the logs that the configuration in force names, if they are JSON lines. */
void log_tail_begin(struct log_tail *tail, char *const *paths, size_t count);
/* Reads on. False: a path that was given cannot be read, and stderr says why. */
bool log_tail_read(struct log_tail *tail);
void log_tail_end(struct log_tail *tail);

/* --- usage.c --- */

/* What went on with whole frames between two looks, a second. */
struct usage_rate {
    double frames, left_out; /* negative: nobody has looked before */
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
