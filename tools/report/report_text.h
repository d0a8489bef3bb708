/*
 * report_text.h - what the parts of the text report share. For report_text.c, report_stack.c and
 * report_contents.c only.
 */
#ifndef REPORT_TEXT_H
#define REPORT_TEXT_H

#include "cli/term.h"
#include "report.h"

#define TEXT_MARGIN "========= "
#define TEXT_INDENT TEXT_MARGIN "    "

/* What every part needs. */
struct printer {
    FILE *out;
    const struct report *report;
};

enum term_colour text_colour(enum gps_level level);

/* report_stack.c: a line a frame, without those of a program's start. */
void text_stack(const struct printer *to, const struct log_stack *stack);

/* report_contents.c: a line a finding, where there are more than a few. */
void text_contents(const struct printer *to);

#endif
