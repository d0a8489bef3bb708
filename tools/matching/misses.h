/*
 * misses.h - says why a rule does not take an allocation.
 */
#pragma once

#include "config/config.h"
#include "gpushare/explained.h"

/* The first key of a rule that an allocation does not fit: the later, the nearer it came. */
enum miss {
    MISS_PROGRAM,
    MISS_SIZE,
    MISS_DEVICE,
    MISS_POOL,
    MISS_CALLER,
    MISS_INDEX,
};

enum miss miss_of(const struct gps_rule *rule, const struct gps_explained *process,
                  const struct gps_explained_row *row);

/* "size = 65MiB, and this is 64 MiB"; malloc'ed. */
char *miss_text(enum miss miss, const struct gps_rule *rule, const struct gps_explained *process,
                const struct gps_explained_row *row);

/* The key that was missed with its value, as a file has it: "size = 65MiB"; malloc'ed. */
char *miss_key(enum miss miss, const struct gps_rule *rule);
