/*
 * rule_counts.h - counts the outcomes of allocations, for `gpushare explain`.
 *
 * The module owns the file of gpushare/explained.h. It costs nothing unless GPUSHARE_EXPLAIN is
 * set. It has a lock of its own, so any thread may call its functions.
 */
#pragma once

#include "rule_request.h"

extern bool gps_rule_counts_active;

void gps_rule_counts_start(void);

/* Counts one allocation. `pointer` is the memory that a rule gave; 0: no rule gave memory, or the
 * allocation failed (`failed`). */
void gps_rule_counts_add(const struct gps_rule_request *request, uint64_t pointer, bool failed);

/* The same for VMM memory that the program made. */
void gps_rule_counts_add_created(const struct gps_rule_request *request, bool taken);

/* The driver's code for the allocation that this thread counted last, if no rule gave it memory. */
void gps_rule_counts_answer(int code);

/* The process ends. `why`: why nothing was merged at last; 0: nothing was in the way. */
void gps_rule_counts_end(enum gps_not_merging why);
