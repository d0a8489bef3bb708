/*
 * log_view.h - what both formats of a report share: how much of it fits, and the words of the sum.
 *
 * Each format is a plain function of a view: the report, less what had to go. When the result was
 * cut, the next smaller view is tried; a report that is too long is rare, and formatting takes
 * microseconds.
 */
#ifndef GPS_LOG_VIEW_H
#define GPS_LOG_VIEW_H

#include "format.h"

struct gps_logview {
    struct gps_report report;
    unsigned omitted; /* frames of its own stack that were left out */
};

/* Leaves out the next least important part. False when nothing is left to leave out. */
bool gps_logview_shrink(struct gps_logview *view);

/* The call as it stands in a program: without the version that its ABI name has (cuMemFree_v2). */
void gps_logview_api(struct gps_text *text, const char *api);
void gps_logview_id(struct gps_text *text, const struct gps_id *id);
void gps_logview_tally(struct gps_text *text, const struct gps_tally *tally);

#endif
