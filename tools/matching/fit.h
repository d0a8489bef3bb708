/*
 * fit.h - what `gpushare explain` saw of a program, kept in a file, and which allocations of two
 * such programs may be one region.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "gpushare/explained.h"

/* Writes the allocations of processes, as JSON. */
void fit_write(FILE *out, struct gps_explained *const *processes, size_t count);
/* A file, and what messages call it. */
struct fit_side {
    const char *path, *name;
};
/* Two rules, without an empty line behind them; malloc'ed. */
struct fit_rules {
    char *exporter, *importer;
};
/* Prints on stderr what of two files fits together: the first file's program exports. False:
 * nothing fits, or a file cannot be read; stderr says so. */
bool fit_find(struct fit_rules *rules, const struct fit_side *exporter,
              const struct fit_side *importer);
/* Prints both, the exporter's with more lines. */
void fit_print(FILE *out, const struct fit_rules *rules, const char *more);
void fit_free(struct fit_rules *rules);
