/*
 * command.h - runs a command, and waits for it and for all that it starts.
 *
 * This process becomes the reaper of its descendants, so none can leave it by a double fork. A
 * terminal sends SIGINT and SIGQUIT to the command as well, so they are not passed on; SIGTERM and
 * SIGHUP come to this process alone, and are passed on. With COMMAND_ALONE, SIGINT, SIGQUIT,
 * SIGUSR1 and SIGUSR2 are passed on, too, if a process sent them. SIGPIPE is ignored until the end.
 *
 * With COMMAND_AND_DESCENDANTS a message names, a second after a Ctrl-C, those that go on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct watched;

/* From now on the signals that end this process wait, so that nothing of its own stays behind: what
 * is pending then goes to the command. Between both, a command starts with the mask of before. A
 * forked child inherits it; a second call changes nothing. */
void command_hold_signals(void);
void command_release_signals(void);

/* Whose end is waited for. */
enum command_awaited { COMMAND_ALONE, COMMAND_AND_DESCENDANTS };

struct command_left {
    size_t count;
    char *names; /* "app (pid 7) and 3 more"; malloc'ed, or NULL */
};

/* Runs the command to its end, then gives its descendants, if they are awaited, 5 seconds to end,
 * and to the second Ctrl-C. *left: those that did not. In a container the command gets a pid of
 * its own (own_pid_fork). Unwatched processes are looked for unless `watched` is NULL (watched.h).
 * Returns the command's exit status, or 128 + the signal that ended it; or -errno when it could not
 * be executed. */
int command_run(char **command, enum command_awaited awaited, struct watched *watched,
                struct command_left *left);

/* --- a pid that no process of the directory has in another pid namespace --- */

/* The driver tells processes apart by their pids alone. The programs of two containers are both
 * process 1, and so cannot open each other's handles. */

/* Whether the command should get another pid than this process's: it runs in a container, or a live
 * process of the directory has its number in another pid namespace. */
bool own_pid_needed(void);

/* Prints on stderr the command with these rules: "Next: gpushare run -c FILE -- CMD". `path` NULL
 * or "-": they were printed, and are in no file yet. */
void command_tell_next(const char *before, char **command, const char *path);
