/*
 * unmerged.h - why a process whose rules merge merges nothing: said once, and published.
 *
 * The merger's thread finds out in each turn, and a thread that cannot start it, or has no gate,
 * says so itself. `gpushare show`, `doctor` and `explain` read it.
 */
#pragma once

#include "gpushare/region.h"

/* 0: nothing is in the way. Any thread, inside a gps_scope without a lock. */
void gps_unmerged_set(enum gps_unmerged why);
enum gps_unmerged gps_unmerged_get(void);
