/*
 * reporter.h - a finding becomes a report: the call under way, the stacks, then log.h.
 *
 * Reports are rare; everything costly (the modules of the frames, what another process published)
 * happens here and only here. Any thread may call the functions, inside a gps_scope.
 */
#pragma once

#include "log/log.h"
#include "policy.h"
#include "process/references.h"
#include "registry/freed_history.h"
#include "registry/registry.h"
#include "registry/vmm_books.h"
#include "util/text.h"

/* Begins a report of this finding, with the API in it; the caller adds the details. */
struct gps_report gps_report_new(enum gps_finding finding);
/* Policy's answer in this process to a question without further details. */
struct gps_answer gps_answer_on(enum gps_ask ask, enum gps_known known);
/* A report of policy's finding, which is GPS_NO_FINDING where policy has none. */
struct gps_report gps_report_on(enum gps_ask ask, enum gps_known known);
/* Adds pointer, size, id, name, device and context of a region of ours, or of an import, and where
 * it was allocated and exported, or opened; of an import, its exporter. */
void gps_report_about_export(struct gps_report *report, const struct gps_export *region);
void gps_report_about_import(struct gps_report *report, const struct gps_import *import);
/* Adds size, device and context of ended memory, and where it was `born` and `ended`. */
void gps_report_about_freed(struct gps_report *report, const struct gps_freed *freed,
                            const char *born, const char *ended);
/* Adds device of VMM memory, and where it was made or opened. */
void gps_report_about_memory(struct gps_report *report, const struct gps_vmm_memory *memory);
/* Adds the other processes that have its subject open, as gps_references_users gave them: `count`
 * of them, or -errno. `users` holds the first GPS_USERS_REPORTED. */
void gps_report_users(struct gps_report *report, const struct gps_party *users, int count);
/* Sends the whole report of an answer's finding about a region of ours and its importers. The
 * report tells what gpushare does about it. */
void gps_report_held(const struct gps_export *region, const struct gps_answer *answer,
                     const struct gps_party *users, int count);
/* Adds "the driver's code is 719: an earlier kernel or copy failed, ...", in `detail`, which must
 * stay, and the hint that goes with the code. Codes differ by place. */
void gps_report_code(struct gps_report *report, struct gps_text *detail, int code);
/* gps_report.variant for a kind, by words that are the same in every run. */
uint64_t gps_report_variant(const char *kind);
/* Adds an earlier event of this process, if it has a trace. `what` is a literal. */
void gps_report_prior(struct gps_report *report, const char *what, uint32_t trace);

/* Completes and writes it. `origin`: another process's record, whose past is added; or NULL. */
void gps_report_send_with(struct gps_report *report, const struct gps_region_record *origin);
static inline void gps_report_send(struct gps_report *report) {
    gps_report_send_with(report, NULL);
}

/* These report store-unavailable, the first time only: what failed, and the -errno behind it. The
 * second is for the status of gps_references_*, and does nothing when that is 0. */
void gps_report_store(int status, const char *what);
void gps_report_reference(int status);
/* Reports record-invalid for a region's record. */
void gps_report_record(const struct gps_id *region, const char *why);
