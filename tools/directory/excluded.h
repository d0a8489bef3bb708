/*
 * excluded.h - the allocations that are never merged again (directory/exclusions.h), each once.
 */
#pragma once

#include <stddef.h>

#include "directory/exclusions.h"

struct excluded {
    const char *program; /* NULL: all */
    struct gps_exclusion *list;
    size_t count;
};

/* 0 or -errno; `list` is to be freed in any case. */
int excluded_read(const struct gps_store *store, const char *program, struct excluded *excluded);
size_t excluded_count(const struct gps_store *store, const char *program);
