/*
 * format_common.h - the shared parts of the two report formats: shortening a report, and its texts.
 *
 * Each format is a pure function of a view, which is the report without the parts that did not fit.
 * If the formatted text was cut, the next smaller view is formatted. Reports that are too long are
 * rare, and formatting takes microseconds.
 */
#pragma once

#include "format.h"

struct gps_format_view {
    struct gps_report report;
    unsigned omitted; /* frames of the report's own stack that were left out */
};

/* Leaves out the least important part that is left. False: nothing is left to leave out. */
bool gps_format_shrink(struct gps_format_view *view);

/* The name of a call in a program's source, without the version of its ABI name (cuMemFree_v2). */
void gps_format_api(struct gps_text *text, const char *api);
void gps_format_id(struct gps_text *text, const struct gps_id *id);
void gps_format_tally(struct gps_text *text, const struct gps_tally *tally);
