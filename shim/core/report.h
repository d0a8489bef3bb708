/*
 * report.h - a finding becomes a report: the call under way, the stack, then log.h.
 *
 * Reports are rare; everything costly (the stack, the modules of its frames) happens here and only
 * here. Call inside a gps_scope. Safe from any thread.
 */
#ifndef GPS_REPORT_H
#define GPS_REPORT_H

#include "log.h"
#include "registry.h"

/* A report of this finding with the API in it; the caller adds what it knows. */
struct gps_report gps_report_new(enum gps_finding finding);
/* Adds pointer, size, id, name and device of a region of ours, or of an import. */
void gps_report_about_export(struct gps_report *report, const struct gps_export *region);
void gps_report_about_import(struct gps_report *report, const struct gps_import *import);
void gps_report_send(struct gps_report *report);

/* store-unavailable, the first time only: what failed and the errno behind it. */
void gps_report_store(int status, const char *what);
/* record-invalid for a region's record. */
void gps_report_record(const struct gps_id *region, const char *why);

/* The file name of the first module on the stack that is neither libcuda nor libcudart nor ours:
 * who asked for the allocation. "" for code outside any module. */
void gps_report_caller(char *name, size_t size);

#endif
