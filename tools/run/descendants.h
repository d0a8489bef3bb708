/*
 * descendants.h - runs a command, waits for it and for all that it starts, and says who they are.
 *
 * This process becomes the reaper of its descendants, so none can leave it by a double fork. A
 * terminal sends SIGINT and SIGQUIT to the command as well, so they are not passed on; SIGTERM and
 * SIGHUP come to this process alone, and are passed on. With DESCENDANTS_NONE, SIGINT, SIGQUIT,
 * SIGUSR1 and SIGUSR2 are passed on, too, if a process sent them. SIGPIPE is ignored until the end.
 *
 * With DESCENDANTS_ALL a message names, a second after a Ctrl-C, those that go on all the same.
 *
 * One thread calls these functions. What /proc does not show of a process counts as empty.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct descendants {
    int status;     /* the command's exit status, or 128 + the signal that ended it */
    size_t running; /* descendants that did not end in time */
};

/* Whose end is waited for after the command's. */
enum descendants_awaited { DESCENDANTS_NONE, DESCENDANTS_ALL };

typedef void descendants_fn(void *arg, uint32_t pid);

/* The function is called with each descendant that lives: when there are events, and 1, 2, 4 ... ms
 * after; without events from 50 ms on at growing intervals, up to a second. */
struct descendants_scan {
    descendants_fn *fn;
    void *arg;
    int events; /* a descriptor from which they are read and dropped; -1: none */
};

/* Runs the command to its end, then gives all its descendants, or none, 5 seconds to end, and to
 * the second Ctrl-C. In a container the command gets a pid of its own (own_pid.h). `scan` may be
 * NULL. 0, or -errno when the command could not be executed. */
int descendants_run(char **command, enum descendants_awaited awaited,
                    const struct descendants_scan *scan, struct descendants *descendants);

/* What a person calls a process, as shim/process/program.h has it: cam.py, not python3. malloc'ed.
 */
char *descendants_name(uint32_t pid);

/* The value of a variable in the environment with which a process was started; malloc'ed. NULL: it
 * is not set. */
char *descendants_variable(uint32_t pid, const char *variable);
