/*
 * format.h - one report as text.
 *
 * Pure functions onto a buffer of the caller's. What does not fit is left out by whole parts,
 * frames first (from the far end; those of earlier events before its own), then the detail, then
 * other processes: a JSON line is valid JSON whatever its length was going to be. The keys are
 * those of docs/log.schema.json.
 */
#ifndef GPS_FORMAT_H
#define GPS_FORMAT_H

#include "log.h"
#include "util/text.h"

#define GPS_LOGLINE_BYTES 65536u

/* Who reports, and when. */
struct gps_stamp {
    uint64_t time; /* CLOCK_REALTIME */
    uint32_t pid, tid;
    uint64_t pid_ns;
    const char *command;
};

/* What a run comes to. */
struct gps_tally {
    uint64_t findings; /* reports that were no repeats; of them: */
    uint64_t errors;
    uint64_t lost;      /* could not be written */
    uint64_t unwritten; /* came after log_max was reached */
    uint64_t repeated;  /* further occurrences of findings */
    bool full;          /* more call sites than are told apart */
};

/* `site`: what tells repeats of the report; 0: none. */
struct gps_text gps_logline_text(char *buffer, size_t size, const struct gps_report *report,
                                 const struct gps_stamp *stamp);
struct gps_text gps_logline_jsonl(char *buffer, size_t size, const struct gps_report *report,
                                  const struct gps_stamp *stamp, uint64_t site);

struct gps_text gps_logline_allocation(char *buffer, size_t size,
                                       const struct gps_listed_line *line,
                                       const struct gps_stamp *stamp);

/* A line that is no finding: what `message` says of the log itself. */
struct gps_text gps_logline_notice_text(char *buffer, size_t size, const char *message);
struct gps_text gps_logline_notice_jsonl(char *buffer, size_t size, const char *message,
                                         const struct gps_stamp *stamp);

/* At the end: `count` further occurrences of a finding that was reported; then the sum. */
struct gps_text gps_logline_repeat_text(char *buffer, size_t size, const struct gps_report *first,
                                        uint64_t count);
struct gps_text gps_logline_summary_text(char *buffer, size_t size, const struct gps_tally *tally);
struct gps_text gps_logline_summary_jsonl(char *buffer, size_t size, const struct gps_tally *tally,
                                          const struct gps_stamp *stamp);

#endif
