/*
 * report_format.h - a report as a person, a script or a code-scanning service wants it.
 *
 * No function checks whether `out` could be written: that is left to the caller.
 */
#pragma once

#include <jansson.h>

#include "cli/term.h"
#include "report_model.h"

#define REPORT_MARGIN "========= "
#define REPORT_INDENT REPORT_MARGIN "    "

void report_text(FILE *out, const struct report *report);
void report_json(FILE *out, const struct report *report);
void report_sarif(FILE *out, const struct report *report);

/* A table of contents, a line a finding; nothing where there are only a few. */
void report_contents(FILE *out, const struct report *report);
enum term_colour report_level_colour(enum gps_level level);

/* At most `max` frames from the innermost on, a line each behind the margin, without those that
 * start a program. */
void report_stack(FILE *out, const char *margin, const struct log_stack *stack, size_t max,
                  struct symbols *symbols);
/* All frames. */
json_t *report_stack_json(const struct log_stack *stack, struct symbols *symbols);
