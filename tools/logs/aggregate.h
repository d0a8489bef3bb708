/*
 * aggregate.h - the logs of many processes as one story: each finding once.
 *
 * Findings are equal that have the id, the call and the stack in common; frames are compared by
 * build id, else by the module's file name, and by offset, so processes and their address spaces do
 * not matter, nor do earlier events; but what has no stack of its own, as a leak, has that of the
 * last of them. A group stands in the place of its first occurrence, and that one's facts are its
 * facts. What a process counted as repeats of a site belongs to the group of
 * that site. Strings and lines are those of the logs, which must live as long.
 */
#ifndef AGGREGATE_H
#define AGGREGATE_H

#include "logs.h"

struct string_map;

struct aggregate_group {
    const struct log_line *first;
    const char *last; /* when */
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
    uint64_t findings[GPS_LEVEL_ERROR + 1]; /* groups by level; of what is not suppressed */
    uint64_t occurrences, processes;
    uint64_t suppressed; /* groups */
};

/* From sorted logs; findings below the level are left out. */
void aggregate_make(struct aggregate *aggregate, const struct logs *logs, enum gps_level level);
void aggregate_free(struct aggregate *aggregate);
struct aggregate_sums aggregate_sums(const struct aggregate *aggregate);

/* The stack that tells the finding from others of its kind; may be an empty one. */
const struct log_stack *aggregate_stack(const struct log_line *line);

/* The file name of a path. */
const char *tool_base_name(const char *path);

#endif
