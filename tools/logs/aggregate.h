/*
 * aggregate.h - the findings of many processes, aggregated: each one once.
 *
 * Findings are equal that have the id, the call and the stack in common. Frames are compared by
 * build id, else by the module's file name, and by offset; so processes and their address spaces do
 * not matter. Earlier events do not matter either, with one exception: a finding without a stack of
 * its own, as a leak, has the stack of the last event. A group stands in the place of its first
 * occurrence and has the facts of that one, but the highest level of all. The repeats of a call
 * site that a process counted belong to the group of that site. The order in which lines are read
 * does not matter, but for lines of one time.
 */
#pragma once

#include "logs.h"

struct aggregate_process {
    struct log_process facts;
    size_t number;
    char texts[]; /* those of the facts */
};

struct aggregate_group {
    size_t number; /* its index among the groups */
    struct log_line *first;
    char last[LOG_TIME_BYTES];                  /* the time of the last occurrence */
    uint64_t count;                             /* occurrences */
    const struct aggregate_process **processes; /* by time */
    size_t process_count;
    bool suppressed;
    const char *known; /* suppressed as what this library does; NULL: as what the user knows */
};

struct aggregate {
    struct aggregate_state *state;   /* of aggregate.c */
    struct aggregate_group **groups; /* by time */
    size_t count;
    bool namespaces; /* pids of more than one pid namespace occur: a pid alone says too little */
};

struct aggregate_sums {
    uint64_t all, findings[GPS_LEVEL_ERROR + 1]; /* groups that are not suppressed; by level */
    uint64_t occurrences, processes;
    uint64_t suppressed; /* groups, by the user */
};

/* Findings below the level are left out. */
void aggregate_begin(struct aggregate *aggregate, enum gps_level level);
/* A log_sink's function, for an aggregate. */
const char *aggregate_add(void *aggregate, const char *text, size_t length);
/* Adds a line that was made of `text`. Returns the group to which a line with a stack belongs;
 * NULL: it was left out. The group has its members after aggregate_end. */
const struct aggregate_group *aggregate_add_line(struct aggregate *aggregate,
                                                 const struct log_line *line, const char *text);
/* Makes the groups. No line can be added after that. */
void aggregate_end(struct aggregate *aggregate);
void aggregate_free(struct aggregate *aggregate);
/* How many processes occur in the lines. */
size_t aggregate_processes(const struct aggregate *aggregate);
struct aggregate_sums aggregate_sums(const struct aggregate *aggregate);

/* The stack that tells the finding from others of its kind: its own, or that of the last event. It
 * can be empty. */
const struct log_stack *aggregate_stack(const struct log_line *line);
