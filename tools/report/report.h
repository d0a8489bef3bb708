/*
 * report.h - what logs come to, as a person, a script or a code-scanning service wants it.
 */
#ifndef REPORT_H
#define REPORT_H

#include "logs/aggregate.h"
#include "suppress.h"
#include "symbols/symbol.h"

struct report {
    struct logs logs; /* filled by the caller, before report_make */
    struct aggregate aggregate;
    struct symbols *symbols;
};

/* Findings of this level and above; `debug_directory` may be NULL (symbol.h). */
void report_make(struct report *report, enum gps_level level,
                 const struct suppressions *suppressions, const char *debug_directory);
void report_free(struct report *report);
/* Whether a finding of level error is not suppressed. */
bool report_has_error(const struct report *report);

/* What is skipped in a log, on stderr. */
void report_complain(const char *file, unsigned long line, const char *message);

/* Values of the options that report and audit share. False: said on stderr. */
bool report_level(const char *option, enum gps_level *level);
bool report_suppressions(const char *option, struct suppressions *suppressions);

/* The formats. Nothing is checked of `out`: that is the caller's. */
void report_text(FILE *out, const struct report *report);
void report_json(FILE *out, const struct report *report);
void report_sarif(FILE *out, const struct report *report);

/* At most `max` frames from the innermost on, a line each behind the margin, without those of a
 * program's start; and as JSON, all of them. */
void report_stack(FILE *out, const char *margin, const struct log_stack *stack, size_t max,
                  struct symbols *symbols);
json_t *report_stack_tree(const struct log_stack *stack, struct symbols *symbols);

#endif
