/*
 * log_line.h - one line of a log, parsed.
 */
#pragma once

#include "logs.h"

/* NULL: it is no line of a log, and *wrong says why. */
struct log_line *log_line_parse(const char *bytes, size_t count, const char **wrong);
void log_line_free(struct log_line *line);

/* Finds a level by its name. */
bool log_line_level(const char *name, enum gps_level *level);
