/*
 * mistaken.h - the allocations that are never merged again (directory/mistakes.h), each once.
 */
#pragma once

#include <stddef.h>

#include "directory/mistakes.h"

struct mistaken {
    struct gps_mistake *list;
    size_t count;
};

/* Of one program, or all: NULL. 0 or -errno; `list` is to be freed in any case. */
int mistaken_read(const struct gps_store *store, const char *program, struct mistaken *mistaken);
size_t mistaken_count(const struct gps_store *store, const char *program);
