/* temporary.h - a directory for the files of one run, of mode 0700. */
#pragma once

#include <limits.h>
#include <stdbool.h>

/* Makes a directory in TMPDIR, or in /tmp; the path is absolute. False: stderr says why, and names
 * TMPDIR as the remedy, and then `remedy`, which may be "". */
bool temporary_make(char path[PATH_MAX], const char *remedy);

/* Removes the directory and the files in it. */
void temporary_remove(const char *path);
