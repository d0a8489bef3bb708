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
/* Prints what of two files fits together on stderr, and two rules: the first file's program
 * exports, with `frames` as that key's value, unless it is NULL. False: nothing fits, or a file
 * cannot be read; stderr says so. */
bool fit_print(FILE *out, const struct fit_side *exporter, const struct fit_side *importer,
               const char *frames);
