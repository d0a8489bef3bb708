/*
 * format.h - formats one report as text or as a line of JSON.
 *
 * Pure functions that write to a buffer of the caller's. A report that does not fit loses whole
 * parts: first frames (the outermost; those of earlier events before its own), then the detail,
 * then other processes. So a JSON line is always valid. Its keys are those of docs/log.schema.json.
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
};

/* The totals of a process. */
struct gps_tally {
    uint64_t findings; /* reports that were no repeats; of them: */
    uint64_t errors;
    uint64_t lost;      /* could not be written */
    uint64_t unwritten; /* came after log_max was reached */
    uint64_t repeated;  /* further occurrences of findings */
    bool full;          /* there were more call sites than the table of repeats holds */
};

/* `site` identifies the call site and so links repeats to their report; 0: none. */
struct gps_text gps_logline_text(char *buffer, size_t size, const struct gps_report *report,
                                 const struct gps_stamp *stamp);
struct gps_text gps_logline_jsonl(char *buffer, size_t size, const struct gps_report *report,
                                  const struct gps_stamp *stamp, uint64_t site);

struct gps_text gps_logline_allocation(char *buffer, size_t size,
                                       const struct gps_listed_line *line,
                                       const struct gps_stamp *stamp);

/* A line that is not a finding: a message about the log itself. */
struct gps_text gps_logline_notice_text(char *buffer, size_t size, const char *message);
struct gps_text gps_logline_notice_jsonl(char *buffer, size_t size, const char *message,
                                         const struct gps_stamp *stamp);

/* At the end: `count` further occurrences of a reported finding, and the totals. */
struct gps_text gps_logline_repeat_text(char *buffer, size_t size, const struct gps_report *first,
                                        uint64_t count);
struct gps_text gps_logline_summary_text(char *buffer, size_t size, const struct gps_tally *tally);
struct gps_text gps_logline_summary_jsonl(char *buffer, size_t size, const struct gps_tally *tally,
                                          const struct gps_stamp *stamp);
