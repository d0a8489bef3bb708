/*
 * own_pid.h - gives the command a pid that no process of the directory has in another pid
 * namespace.
 *
 * The driver tells processes apart by their pids alone. The programs of two containers are both
 * process 1, and so cannot open each other's handles.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Whether the command should get another pid than this process's: it runs in a container, or a live
 * process of the directory has its number in another pid namespace. */
bool own_pid_needed(void);

/* Forks a child with such a pid, if this user may choose one (CAP_CHECKPOINT_RESTORE). Else it has
 * the next one, and a warning says so where a process of another pid namespace has that. */
pid_t own_pid_fork(void);
