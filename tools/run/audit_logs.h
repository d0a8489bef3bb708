/*
 * audit_logs.h - the directory into which the processes of an audit write their logs.
 *
 * A directory that the user names is made if it does not exist, and stays. Without one a temporary
 * directory of mode 0700 is made, and removed at the end. Lines come here through the channel
 * (audit_channel.h), events and what the channel does not take directly. Each command and pid has a
 * file. Processes that have both in common, as after an exec or in two pid namespaces, append to
 * the same file, one line a write.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "audit_channel.h"
#include "logs/logs.h"

struct audit_logs {
    char path[PATH_MAX]; /* absolute */
    bool temporary;
};

/* Without a directory, a temporary one is made. False: stderr says why. */
bool audit_logs_open(struct audit_logs *logs, const char *directory);
void audit_logs_close(const struct audit_logs *logs);

/* Sets the environment so that the library only observes, and logs messages of this level or above
 * into the directory; with `events` also an event log. */
void audit_logs_set_environment(const struct audit_logs *logs, const char *level, bool events);

/* Calls `line`, the function of a log_sink, for each line that was written, in the directory or
 * kept by the channel, which is closed; NULL: what is kept, no event, is not wanted. False: a line
 * is missing, or a log could not be read, or not whole; stderr says why. */
bool audit_logs_read(const struct audit_logs *logs, const struct audit_channel *channel,
                     log_line_fn *line, void *arg);
