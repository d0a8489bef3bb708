/*
 * library.h - the place of libgpushare.so, and its way into LD_PRELOAD.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

/* Looks for libgpushare.so: GPUSHARE_LIBRARY, beside this executable, in the lib directories beside
 * its directory, where it is installed. The path is absolute. False: `path` then lists the places
 * searched, for a message. */
bool library_find(char path[PATH_MAX]);

/* False where LD_PRELOAD could not hold the path: blanks and colons separate there. */
bool library_preloadable(const char *path);

/* The value that LD_PRELOAD must have: the library first, then the existing value, which may be
 * NULL. malloc'ed. */
char *library_preload_value(const char *library, const char *existing);
