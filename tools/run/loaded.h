/*
 * loaded.h - which of the vendors' runtimes a process has loaded, and which library of ours.
 *
 * Read from its maps.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "vendor.h"

struct loaded {
    char *drivers[RUNTIMES]; /* by enum runtime: the path of the runtime's own library, or NULL */
    bool libraries[RUNTIMES];
};

/* Whether a line of maps is code of a file with this name, or with a version behind it. */
bool loaded_is_code_of(const char *line, const char *name);

/* False: there is no such process, or its maps cannot be read. */
bool loaded_read(uint32_t pid, struct loaded *loaded);
void loaded_free(struct loaded *loaded);

/* The one runtime that it has loaded; `other` where there is none, or more than one. */
enum runtime loaded_runtime(const struct loaded *loaded, enum runtime other);
