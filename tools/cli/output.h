/* output.h - the file into which a verb writes its result. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* Opens the file, and leaves in it what it has; without a path, or with "-", it is standard output.
 * NULL: it cannot be written, and stderr says why. */
FILE *output_open(const char *path);
/* Closes the file; NULL is allowed. It has what was written now. If nothing was written it has what
 * it had before, or is removed if it was empty. False: not everything was written, and stderr says
 * so. For standard output the tool says so when it ends. */
bool output_close(FILE *file, const char *path);
