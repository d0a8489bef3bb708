/*
 * usage_text.h - the usage as tables of text, for `top --once` and for the screen.
 */
#pragma once

#include <stdio.h>

#include "cli/term.h"
#include "usage.h"

#define USAGE_WIDE 110 /* columns for the wide layout */

struct usage_layout {
    bool narrow;      /* fewer columns, with shorter titles and names */
    const char *mark; /* stands where text was cut */
};

/* The colours of the rows of a table, where the text cannot have them. */
struct usage_rows {
    enum term_colour *colours;
    size_t count;
};

/* "In use 64 MiB, without sharing 128 MiB: saved 64 MiB (50 %)" */
void usage_text_totals(FILE *out, const struct usage *usage);
/* Tables with a line of titles, each with its rows in `rows`, unless that is NULL; nothing when
 * there is none. */
void usage_text_gpus(FILE *out, const struct usage *usage, struct usage_rows *rows);
void usage_text_processes(FILE *out, const struct usage *usage, const struct usage_layout *layout,
                          struct usage_rows *rows);
void usage_text_regions(FILE *out, const struct usage *usage, const struct usage_layout *layout,
                        struct usage_rows *rows);
/* The sum of the findings, a line; and the latest of them, the last first. */
void usage_text_levels(FILE *out, const struct usage *usage);
void usage_text_findings(FILE *out, const struct usage *usage, size_t most,
                         struct usage_rows *rows);
