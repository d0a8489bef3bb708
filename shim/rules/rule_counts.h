/*
 * rule_counts.h - counts what became of each allocation, for `gpushare explain`.
 *
 * The module owns the file of gpushare/explained.h. It costs nothing unless GPUSHARE_EXPLAIN is
 * set. It has a lock of its own, so any thread may call its functions.
 */
#pragma once

#include "rule_request.h"

extern bool gps_rule_counts_active;

void gps_rule_counts_start(void);

/* Counts one allocation. `pointer` is what a rule gave; it is 0 where no rule gave memory, and
 * where the allocation failed, as `failed` says. */
void gps_rule_counts_add(const struct gps_rule_request *request, uint64_t pointer, bool failed);

/* The same of VMM memory that the program made. */
void gps_rule_counts_add_created(const struct gps_rule_request *request, bool taken);

/* The driver's answer to what no rule gave memory, and the thread counted last. */
void gps_rule_counts_answer(int code);

/* The process ends. Why nothing was merged at last; 0: nothing was in the way. */
void gps_rule_counts_end(enum gps_not_merging why);
