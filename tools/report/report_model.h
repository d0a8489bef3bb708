/*
 * report_model.h - the content of a report: aggregated findings of logs, with their symbols.
 *
 * Also the options that are common to the verbs that print reports.
 */
#pragma once

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

/* A logs_complain_fn: warns on stderr. */
void report_complain(const char *file, unsigned long line, const char *message);

/* Read the values of --level and --suppressions, or NULL. False: said on stderr. */
bool report_level(const char *option, enum gps_level *level);
bool report_suppressions(const char *option, struct suppressions *suppressions);
