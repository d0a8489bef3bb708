/*
 * logs.h - the lines of gpushare's logs (docs/log.schema.json), read back one at a time.
 *
 * A log can end in the middle of a line, for its process was killed; other programs can have
 * written into it; it can come from a newer library. So a foreign line is complained of and
 * skipped, a key that is missing or of the wrong kind counts as not known, and unknown findings are
 * kept. No log is ever whole in memory: it can be larger.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "gpushare/finding.h"

#define LOGS_LINE_MAX ((size_t)1 << 20) /* the library writes a few KiB */

struct log_process {
    int64_t pid;           /* in its own pid namespace */
    int64_t pid_ns;        /* 0: not known */
    const char *command;   /* NULL: not known */
    const char *arguments; /* of who wrote the line; NULL: not known */
    int64_t rank;          /* the same; -1: not known */
};

struct log_frame {
    const char *module; /* NULL: code outside any */
    uint64_t offset;    /* a return address, in the module's own address space */
    const char *build_id;
    const char
        *function; /* function, file and line are those of a Python frame; NULL: a native one */
    const char *file;
    int64_t line;
};

/* The file name of the module, or of a Python frame's source; NULL: not known. */
const char *log_frame_module(const struct log_frame *frame);

struct log_stack {
    struct log_frame *frames;
    size_t count;
};

/* An earlier event, or another process, which has no `what` and no stack. */
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

/* A value that is not known: a string is NULL, a number 0, the device -1. Strings are those of
 * the text or the JSON. */
struct log_line {
    char *text;
    json_t *json;
    const char *ts;
    struct log_process process;
    enum gps_level level;
    const char *finding; /* NULL: no finding, but a notice or a summary */
    const char *api, *ptr, *context, *region, *name, *message, *hint, *site, *detail;
    int64_t size, device, count;
    struct log_stack stack;
    struct log_events prior, others;
};

/* Gets a line as a string, without its newline. Returns NULL, or why it is no line of a log. */
typedef const char *log_line_fn(void *arg, const char *text, size_t length);

/* The functions that get the lines of the logs, and the complaints. */
struct log_sink {
    log_line_fn *line;
    void *arg;
    /* Gets what is wrong with a line; `line` 0: with the whole file. */
    void (*complain)(const char *file, unsigned long line, const char *message);
};

/* Reads a file; `name` is for complaints. 0, or -ENODATA when the file has no line of a log, which
 * is complained of. */
int logs_read(FILE *file, const char *name, const struct log_sink *sink);

/* Lists the *.jsonl files of a directory, sorted. The array and its elements are malloc'ed. NULL:
 * errno says why. */
char **logs_list(const char *directory, size_t *count);

/* Reads a file, all *.jsonl of a directory, or "-" for stdin. 0 or -errno; -ENODATA as above. In a
 * directory every file is read that can be. */
int logs_add(const char *path, const struct log_sink *sink);

/* --- log_line.c: one line --- */

/* `tree`: the caller wants the line's JSON. NULL: it is no line of a log, and *wrong says why. */
struct log_line *log_line_parse(const char *text, size_t length, bool tree, const char **wrong);
void log_line_free(struct log_line *line);

/* Finds a level by its name, which may be NULL. */
bool log_line_level(const char *name, enum gps_level *level);

/* Whether a text, or NULL, is a time of a log. Of two times, the later is the greater text. */
#define LOG_TIME_BYTES sizeof("2026-11-21T02:34:05.123456Z")
bool log_line_is_time(const char *text);

/* --- logs.c: one line of an event log (docs/event.schema.json) --- */

/* A value that is not known: a string is NULL, a number 0. Strings are those of the JSON. */
struct event_line {
    json_t *json;
    size_t order; /* for the caller's use */
    const char *ts, *event;
    int64_t time; /* microseconds since 1970 */
    struct log_process process;
    const char *image; /* of the process, which tells it from others of its pid */
    const char *region, *name, *device, *how, *finding, *level, *api, *detail;
    int64_t size, saved, ns, count, left_out;
};

/* Whether a text is to be read as a line of an event log, and not of a log. */
bool event_line_is(const char *text);
/* NULL: *wrong says why. */
struct event_line *event_line_parse(const char *text, size_t length, const char **wrong);
void event_line_free(struct event_line *line);
/* Microseconds since 1970. False: it is no time of a log. */
bool event_line_time(const char *ts, int64_t *time);
