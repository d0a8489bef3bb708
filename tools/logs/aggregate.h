/*
 * aggregate.h - the findings of many processes, aggregated: each one once.
 *
 * Findings are equal that have the id, the call and the stack in common. Frames are compared by
 * build id, else by the module's file name, and by offset; so processes and their address spaces do
 * not matter. Earlier events do not matter either, with one exception: a finding without a stack of
 * its own, as a leak, has the stack of the last event. A group stands in the place of its first
 * occurrence and has the facts of that one. The repeats of a call site that a process counted
 * belong to the group of that site. Strings and lines are those of the logs, which must live as
 * long.
 */
#pragma once

#include "logs.h"

struct string_map;

struct aggregate_group {
    const struct log_line *first;
    const char *last; /* the time of the last occurrence */
    uint64_t count;   /* occurrences */
    struct log_process *processes;
    size_t process_count;
    struct string_map *seen; /* the processes, by name */
    bool suppressed;
};

struct aggregate {
    struct aggregate_group **groups;
    size_t count;
    bool namespaces; /* pids of more than one pid namespace occur: a pid alone says too little */
};

struct aggregate_sums {
    uint64_t all, findings[GPS_LEVEL_ERROR + 1]; /* groups that are not suppressed; by level */
    uint64_t occurrences, processes;
    uint64_t suppressed; /* groups */
};

/* From sorted logs; findings below the level are left out. */
void aggregate_make(struct aggregate *aggregate, const struct logs *logs, enum gps_level level);
void aggregate_free(struct aggregate *aggregate);
struct aggregate_sums aggregate_sums(const struct aggregate *aggregate);

/* The stack that tells the finding from others of its kind; can be empty. */
const struct log_stack *aggregate_stack(const struct log_line *line);
