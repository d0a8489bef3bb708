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
    const char *watched; /* what an audit has watched, for the summary; or NULL */
};

/* `debug_directory` may be NULL (symbol.h). */
void report_make(struct report *report, struct suppressions *suppressions,
                 const char *debug_directory);
void report_free(struct report *report);
/* What fails a build, the worst first: each takes those before it in, too. */
enum report_fail { REPORT_FAIL_ERROR, REPORT_FAIL_WARNING, REPORT_FAIL_LEAK, REPORT_FAIL_INFO };
/* Whether there is such a finding that is not suppressed. */
bool report_fails(const struct report *report, enum report_fail from);
/* Names on stderr the suppressions that matched nothing. */
void report_unmatched(const struct suppressions *suppressions);

/* The complain function of a log_sink: warns on stderr. */
void report_complain(const char *file, unsigned long line, const char *message);

/* Parse the values of --level and --suppressions, which may be NULL. False: stderr says why. */
bool report_level(const char *option, enum gps_level *level);
bool report_suppressions(const char *option, struct suppressions *suppressions);

/* --- how it is printed --- */

void report_text(FILE *out, const struct report *report);
/* Prints one finding of the report. */
void report_text_group(FILE *out, const struct report *report, const struct aggregate_group *group);
void report_json(FILE *out, const struct report *report);
void report_sarif(FILE *out, const struct report *report);

enum term_colour report_colour(enum gps_level level);
