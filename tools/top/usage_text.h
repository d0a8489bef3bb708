/* usage_text.h - the usage as tables of text, for `top --once` and for the screen. */
#pragma once

#include "cli/table.h"
#include "usage.h"

#define USAGE_WIDE 110 /* columns for the wide layout */

struct usage_layout {
    bool narrow;      /* fewer columns, with shorter titles and names */
    const char *mark; /* stands where text was cut */
    /* Gets each table that has rows, and prints it. A row has a colour in one cell at most. */
    void (*print)(void *arg, struct table *table);
    void *arg;
};

/* "In use 64 MiB, without sharing 128 MiB: saved 64 MiB (50 %)"; malloc'ed. */
char *usage_text_totals(const struct usage *usage);
/* Tables with a line of titles. Where the second column has the title USAGE_TARGET, it has what
 * `gpushare show` can be asked of the row, a process ("PID@NAMESPACE") or the id of a region, or
 * nothing; it is not to be seen. */
#define USAGE_TARGET "TARGET"
void usage_text_gpus(const struct usage *usage, const struct usage_layout *layout);
void usage_text_processes(const struct usage *usage, const struct usage_layout *layout);
void usage_text_regions(const struct usage *usage, const struct usage_layout *layout);
/* The whole frames of regions: a row for each exporter, and one for each of its readers. */
void usage_text_frames(const struct usage *usage, const struct usage_layout *layout);
/* The sum of the findings, a line, malloc'ed; and the latest of them, the last first. */
char *usage_text_levels(const struct usage *usage);
void usage_text_findings(const struct usage *usage, const struct usage_layout *layout, size_t most);
