/*
 * output.h - the file into which a verb writes its result.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* Truncates and opens the file; without a path it is standard output. NULL: it cannot be written,
 * and stderr says why. */
FILE *output_open(const char *path);
/* Closes the file; NULL is allowed. False: not everything was written, and stderr says so. For
 * standard output the tool says so when it ends. */
bool output_close(FILE *file, const char *path);
