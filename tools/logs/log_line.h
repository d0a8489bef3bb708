/*
 * log_line.h - one line of a log, parsed. For logs.c only.
 */
#ifndef LOG_LINE_H
#define LOG_LINE_H

#include "logs.h"

/* NULL: not a line of a log, and why not. */
struct log_line *logs_line_parse(const char *bytes, size_t count, const char **wrong);
void logs_line_free(struct log_line *line);

#endif
