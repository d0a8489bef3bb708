/*
 * canary_report.h - what `gpushare learn --check` says: for what merge rules would take, whether a
 * kernel wrote it after it had been quiet.
 */
#pragma once

#include "profiles.h"

/* What the processes reported of allocations that rules take (shim/learn/canary.h). */
struct canary_sums {
    size_t taken, quiet, written; /* quiet: some of it would have been merged */
};
struct canary_sums canary_sum(const struct profiles *profiles);

/* Prints a row for each written allocation, and one for others alike. `path`: the rules. */
void canary_report(FILE *out, const struct profiles *profiles, const char *path);
