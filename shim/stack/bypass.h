/*
 * bypass.h - finds libraries that call past this one because of RTLD_DEEPBIND.
 *
 * Such a library looks into its own dependencies before the program's global scope, in which this
 * library comes first. The linker does not report that, and calls that are bound lazily are not
 * bound yet. So this reads the first scope of each object in the linker's own part of its list,
 * whose place it knows from the entry of this library: there the scope is the program's, and two
 * numbers beside it are known, too. Where that place is not found, as with another C library, no
 * library is found.
 */
#pragma once

#include <stdbool.h>

#include "util/text.h"

/* Whether such a library, linked with one of these names, is loaded, and the name of its file. The
 * names are beginnings, each with its NUL, then another NUL. It looks only if an object was loaded
 * since the last look, under the linker's lock (util/linker.h). Any thread. */
bool gps_bypass_look(const char *sonames, struct gps_text *name);
