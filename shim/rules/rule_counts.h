/*
 * rule_counts.h - for `gpushare explain`: counts what became of each allocation.
 *
 * Owns the file of gpushare/explained.h. Costs nothing unless GPUSHARE_EXPLAIN is set. Any thread;
 * a lock of its own.
 */
#pragma once

#include "rule_request.h"

extern bool gps_rule_counts_active;

void gps_rule_counts_start(void);

/* `pointer`: of what a rule gave; 0: nothing, or the allocation failed, as `failed` says. */
void gps_rule_counts_add(const struct gps_rule_request *request, uint64_t pointer, bool failed);

void gps_rule_counts_reset(void); /* in a forked child */
