/*
 * descendants.h - runs a command, and waits for it and for all that it starts.
 *
 * This process becomes the reaper of its descendants, so none can leave it by a double fork. A
 * terminal sends SIGINT and SIGQUIT to the command as well, so they are ignored here; SIGTERM and
 * SIGHUP come to this process alone, and are passed on; so are, with DESCENDANTS_NONE, SIGINT,
 * SIGQUIT, SIGUSR1 and SIGUSR2 that a process sends. SIGPIPE is ignored here until the end.
 *
 * With DESCENDANTS_ALL it is said a second after a Ctrl-C who goes on all the same.
 */
#pragma once

#include <stddef.h>

#include "process_tree.h"

struct descendants {
    int status;     /* the command's exit status, or 128 + the signal that ended it */
    size_t running; /* descendants that did not end in time */
};

enum descendants_patience { DESCENDANTS_NONE, DESCENDANTS_ALL };

/* Is called with each descendant that lives, at first after 50 ms and then less often, up to once a
 * second; and when there are events. */
struct descendants_look {
    process_tree_fn *fn;
    void *arg;
    int events; /* a descriptor from which they are read; -1: none */
};

/* Runs the command to its end, then gives all its descendants, or none, 5 seconds to end, and to
 * the second Ctrl-C. In a container the command gets a pid of its own (own_pid.h). `look` may be
 * NULL. 0, or -errno when the command could not be executed. */
int descendants_run(char **command, enum descendants_patience patience,
                    const struct descendants_look *look, struct descendants *descendants);
