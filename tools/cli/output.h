/*
 * output.h - the file that a verb writes what it found to.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* Begins the file anew. Without a path it is standard output. NULL: it cannot be written, which is
 * said. */
FILE *output_open(const char *path);
/* Ends it. False: not all was written, which is said. Of standard output the tool says so when it
 * ends. No file is none to end. */
bool output_close(FILE *file, const char *path);
