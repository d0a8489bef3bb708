/*
 * descendants.h - a command and all that it starts, waited for.
 *
 * This process becomes the reaper of its descendants, so none can leave it by a double fork. The
 * terminal gives its signals to the command as well: SIGINT and SIGQUIT are ignored here, and
 * SIGTERM and SIGHUP, which come to this process alone, are handed on.
 */
#ifndef DESCENDANTS_H
#define DESCENDANTS_H

#include <stddef.h>

struct descendants {
    int status;     /* the command's exit status, or 128 + the signal that ended it */
    size_t running; /* descendants that did not end within the grace */
};

/* Runs the command to its end, then waits `grace` seconds for what it left behind. 0, or -errno
 * when it could not be executed. */
int descendants_run(char **command, unsigned grace, struct descendants *descendants);

#endif
