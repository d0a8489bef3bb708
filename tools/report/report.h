/*
 * report.h - the content of a report, aggregated findings of logs with their symbols, and how a
 * person, a script or a code-scanning service wants it.
 *
 * Also the options that are common to the verbs that print reports. No function checks whether
 * `out` could be written: that is left to the caller.
 */
#pragma once

#include "cli/term.h"
#include "logs/aggregate.h"
#include "suppress.h"
#include "symbols/symbol.h"

struct report {
    struct aggregate aggregate; /* begun and filled by the caller, before report_make */
    struct symbols *symbols;
    const char *watched;   /* what an audit has watched, for the summary; or NULL */
    const char *unwatched; /* and what it did not look at */
};

/* `debug_directory` may be NULL (symbol.h). */
void report_make(struct report *report, struct suppressions *suppressions,
                 const char *debug_directory);
void report_free(struct report *report);
/* Names on stderr the user's suppressions that matched nothing. */
void report_unmatched(const struct suppressions *suppressions);

/* The complain function of a log_sink: warns on stderr. */
void report_complain(const char *file, unsigned long line, const char *message);
/* Reads logs. One that cannot be read does not keep the others from being read, and stderr says so.
 * 0; -ENODATA: one has no line of a log; -EIO: one cannot be read. */
int report_read_logs(char **paths, log_line_fn *line, void *arg);

/* Parse the values of --level, and of --suppressions and --no-default-suppressions, which may be
 * NULL. False: stderr says why. */
bool report_level(const char *option, enum gps_level *level);
bool report_suppressions(const char *option, const char *no_defaults,
                         struct suppressions *suppressions);

/* --- what fails a build --- */

/* The worst first. */
enum report_kind { REPORT_FAIL_ERROR, REPORT_FAIL_WARNING, REPORT_FAIL_LEAK, REPORT_FAIL_INFO };

struct report_fail {
    enum report_kind on; /* and what is worse */
    int status;          /* 0: nothing fails it */
};

/* Parses --fail-on, --error-exitcode and --level, which may be NULL. False: stderr says why. */
bool report_fail_parse(struct report_fail *fail, const char *kind, const char *status,
                       const char *level);
/* Whether a level, of an option or a variable, leaves out what counts; stderr says so then. */
bool report_fail_misses(const struct report_fail *fail, const char *setting, const char *text);
/* The exit status that a finding makes that is not suppressed; 0: there is none. */
int report_fail_status(const struct report_fail *fail, const struct report *report);

/* --- how it is printed --- */

void report_text(FILE *out, const struct report *report);
/* Prints one finding of the report. */
void report_text_group(FILE *out, const struct report *report, const struct aggregate_group *group);
void report_json(FILE *out, const struct report *report);
void report_sarif(FILE *out, const struct report *report);

enum term_colour report_colour(enum gps_level level);
