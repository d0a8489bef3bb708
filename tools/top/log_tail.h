/* log_tail.h - the findings that logs have, as they grow. */
#pragma once

#include "logs/follow.h"
#include "logs/logs.h"

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
