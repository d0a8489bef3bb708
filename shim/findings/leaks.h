/*
 * leaks.h - imports, exports and memory that are left when the process, or a context, ends.
 *
 * Equal leaks (one finding, one call site, one exporter) are one report with a count and a sum of
 * bytes: a program that leaks, leaks often. The module owns the sums. Inside a gps_scope.
 */
#pragma once

#include "registry/registry.h"

/* --- the end of the process: by one thread --- */

void gps_leak_add_export(const struct gps_export *region);
/* Adds the imports, events and memory that are left, and reports all. */
void gps_leak_report_end(void);

/* --- the end of a context --- */

struct gps_reset {
    uint64_t context;
    uint64_t opens, open_bytes;     /* imports that were open in it */
    uint64_t held, held_bytes;      /* regions of ours that other processes hold */
    uint64_t exports, export_bytes; /* the rest of ours: neither held nor freed */
    struct gps_import import;       /* the first of each */
    struct gps_export export;
    struct gps_export held_export;
};
void gps_leak_reset_import(struct gps_reset *reset, const struct gps_import *import);
void gps_leak_reset_export(struct gps_reset *reset, const struct gps_export *region);
void gps_leak_report_reset(const struct gps_reset *reset);

void gps_leak_reset(void); /* in a forked child */
