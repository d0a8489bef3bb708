/*
 * logs.h - the lines of gpushare's logs (docs/log.schema.json), read back.
 *
 * A log can end in the middle of a line, for its process was killed; other programs can have
 * written into it; it can come from a newer library. So a foreign line is complained of and
 * skipped, a key that is missing or of the wrong kind counts as not known, and unknown findings are
 * kept. Strings are those of the parsed JSON, which the line owns; it never moves.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gpushare/finding.h"

#define LOGS_LINE_MAX ((size_t)1 << 20) /* the library writes a few KiB */

struct log_process {
    int64_t pid;         /* in its own pid namespace */
    int64_t pid_ns;      /* 0: not known */
    const char *command; /* NULL: not known */
};

struct log_frame {
    const char *module; /* NULL: code outside any */
    uint64_t offset;    /* a return address, in the module's own address space */
    const char *build_id;
};

struct log_stack {
    struct log_frame *frames;
    size_t count;
};

/* An earlier event, or another process: then without `what` and stack. */
struct log_event {
    const char *what;
    struct log_process process;
    const char *ts;
    struct log_stack stack;
};

struct log_events {
    struct log_event *events;
    size_t count;
};

/* A value that is not known: a string is NULL, a number 0, the device -1. */
struct log_line {
    json_t *json;
    size_t order; /* the number of lines read before it */
    const char *ts;
    struct log_process process;
    enum gps_level level;
    const char *finding; /* NULL: no finding, but a notice or a summary */
    const char *api, *ptr, *context, *region, *name, *message, *hint, *site, *detail;
    int64_t size, device, count;
    struct log_stack stack;
    struct log_events prior, others;
};

struct logs {
    struct log_line **lines;
    size_t count;
};

/* Gets the trouble with a line, or with the whole file when `line` is 0. */
typedef void logs_complain_fn(const char *file, unsigned long line, const char *message);

/* `name` is for complaints. */
void logs_read(struct logs *logs, FILE *file, const char *name, logs_complain_fn *complain);

/* The *.jsonl files of a directory, sorted: an array and its elements are malloc'ed. NULL: errno
 * says why. */
char **logs_list(const char *directory, size_t *count);

/* Adds a file, all *.jsonl of a directory, or "-" for stdin. 0 or -errno. */
int logs_add(struct logs *logs, const char *path, logs_complain_fn *complain);

/* By time; lines of the same time stay in the order in which they were read. */
void logs_sort(struct logs *logs);
void logs_free(struct logs *logs);

/* --- log_line.c: one line --- */

/* NULL: it is no line of a log, and *wrong says why. */
struct log_line *log_line_parse(const char *bytes, size_t count, const char **wrong);
void log_line_free(struct log_line *line);

/* Finds a level by its name. */
bool log_line_level(const char *name, enum gps_level *level);
