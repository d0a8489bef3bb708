/*
 * tally.h - for `gpushare explain`: counts what became of each allocation.
 *
 * Owns the file of gpushare/explained.h. Costs nothing unless GPUSHARE_EXPLAIN is set. Any thread;
 * a lock of its own.
 */
#pragma once

#include "attempt.h"

extern bool gps_tally_active;

void gps_tally_start(void);

/* `pointer`: of what a rule gave; 0: nothing, or the allocation failed, as `failed` says. */
void gps_tally_add(const struct gps_attempt *attempt, uint64_t pointer, bool failed);

void gps_tally_reset(void); /* in a forked child */
