/*
 * format.h - formats one line of the log, as text or as JSON.
 *
 * Pure functions that write to a buffer of the caller's. A report that does not fit loses whole
 * parts, so JSON stays valid: first the outermost frames of earlier events, then those of its own
 * stack, then the detail, then other processes. Its keys are those of docs/log.schema.json.
 */
#pragma once

#include "log.h"
#include "util/text.h"

#define GPS_LOGLINE_BYTES 65536u

/* The reporting thread, and the time of the report. */
struct gps_stamp {
    uint64_t time; /* CLOCK_REALTIME */
    uint32_t pid, tid;
    uint64_t pid_ns;
    const char *command;
    const char *arguments; /* NULL: not known */
    const char *rank;      /* a number; NULL or empty: it has none */
    bool colour;           /* as text: colours the words that tell the level */
    uint64_t site; /* identifies the call site and so links repeats to their report; 0: none */
};

struct gps_line {
    struct gps_report report;
    const char *notice; /* the message, if the line is not a finding; else NULL */
    const char *title;  /* the beginning of a notice as text: "GPUSHARE" */
    unsigned omitted;   /* frames of its own stack that did not fit */
};

/* Adds all of a line to the text, which may cut it. */
typedef void gps_format_fn(struct gps_text *text, const struct gps_line *line,
                           const struct gps_stamp *stamp);
gps_format_fn gps_format_text;
gps_format_fn gps_format_jsonl;

/* Formats the line without the parts for which there is no room. Reports that are too long are
 * rare, and formatting takes microseconds, so each shorter version is formatted from the start. */
struct gps_text gps_format_line(char *buffer, size_t size, struct gps_line line,
                                const struct gps_stamp *stamp, gps_format_fn *format);

/* The name of a call in a program's source, without its ABI version (_v2). NULL adds nothing. */
void gps_format_api(struct gps_text *text, const char *api);
/* "free-while-open in CALL" */
void gps_format_title(struct gps_text *text, const struct gps_report *report);
