/*
 * excluded.h - the allocations that are not merged again, and those that an error 700 may have come
 * from once (directory/exclusions.h), each in one row.
 */
#pragma once

#include <stddef.h>

#include "directory/exclusions.h"

struct excluded {
    const char *program; /* NULL: all */
    struct gps_exclusion *list;
    size_t count;
    size_t suspected; /* of them: they are merged again this once */
};

/* 0 or -errno; `list` is to be freed in any case. */
int excluded_read(const struct gps_store *store, const char *program, struct excluded *excluded);
/* The same without the list. */
struct excluded excluded_count(const struct gps_store *store, const char *program);
