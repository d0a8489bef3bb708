/*
 * descendants.h - runs a command, and waits for it and for all that it starts.
 *
 * This process becomes the reaper of its descendants, so none can leave it by a double fork. A
 * terminal sends SIGINT and SIGQUIT to the command as well, so they are ignored here; SIGTERM and
 * SIGHUP come to this process alone, and are passed on; so are, with DESCENDANTS_NONE, SIGINT,
 * SIGQUIT, SIGUSR1 and SIGUSR2 that a process sends. SIGPIPE is ignored here until the end.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct descendants {
    int status;     /* the command's exit status, or 128 + the signal that ended it */
    size_t running; /* descendants that did not end in time */
};

enum descendants_patience { DESCENDANTS_NONE, DESCENDANTS_ALL };

/* Is called with each descendant that lives, at first after 50 ms and then less often, up to once a
 * second. */
struct descendants_look {
    void (*fn)(void *arg, uint32_t pid);
    void *arg;
};

/* Runs the command to its end, then gives all its descendants, or none, 5 seconds to end. In a
 * container the command gets a pid of its own (own_pid.h). `look` may be NULL. 0, or -errno when
 * the command could not be executed. */
int descendants_run(char **command, enum descendants_patience patience,
                    const struct descendants_look *look, struct descendants *descendants);
