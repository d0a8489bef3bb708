/*
 * audit_logs.h - the directory into which the processes of an audit write their logs.
 *
 * A directory that the user names is made if it does not exist, and stays. Without one a temporary
 * directory of mode 0700 is made, and removed at the end. Each command and pid has a file.
 * Processes that have both in common, as after an exec or in two pid namespaces, append to the same
 * file, one line a write.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "logs/logs.h"

struct audit_logs {
    char path[PATH_MAX]; /* absolute */
    bool temporary;
};

/* `directory` may be NULL. False: said on stderr. */
bool audit_logs_open(struct audit_logs *logs, const char *directory);
void audit_logs_close(const struct audit_logs *logs);

/* Sets the environment: the library only observes, and logs messages of this level or above into
 * the directory; events, too, if that is wanted. */
void audit_logs_set_environment(const struct audit_logs *logs, const char *level, bool events);

/* Hands on the lines that were written: as a log_sink has it. False: a log could not be read. */
bool audit_logs_read(const struct audit_logs *logs, log_line_fn *line, void *arg);
