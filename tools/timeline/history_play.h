/* history_play.h - what a history knows while it is played: between its files, see history.h. */
#pragma once

#include "cli/string_map.h"
#include "history.h"

/* What an id of a region stands for now: indices plus 1; 0 is none. */
struct history_entry {
    size_t region, lifetime;
};

/* The maps have indices plus 1, too. */
struct history_play {
    struct event_line **lines;
    size_t line_count;
    struct log_line **reports; /* lines of logs that are findings */
    size_t report_count;
    struct string_map *ids;       /* of regions: struct history_entry */
    struct string_map *names;     /* of regions */
    struct string_map *processes; /* by pid, namespace and image */
    struct string_map *open;      /* holds, by process and id */
    struct string_map *findings;  /* marks, by time, process and id */
    struct history_merge *merges;
    size_t merge_count;
};

/* --- history_follow.c --- */

/* Follows a line; they come by time. */
void history_follow(struct history *history, const struct event_line *line);

size_t history_add_process(struct history *history, const struct log_process *facts, int64_t time);
/* Where the number of a finding's mark is: 0 while it has none. */
size_t *history_mark_at(struct history *history, const char *ts, const struct log_process *process,
                        const char *finding);
/* `region`: the id of one, or NULL; it counts if that has a lane. */
void history_add_mark(struct history *history, struct history_mark mark, const char *region);
