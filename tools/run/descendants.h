/*
 * descendants.h - the processes that this process has started, and those that they have started.
 *
 * What /proc does not show of a process counts as empty. Texts are malloc'ed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The pids of those that live; malloc'ed. NULL: there are none. */
uint32_t *descendants_living(size_t *count);

/* The names in a directory of /proc that are numbers: pids, or threads; malloc'ed. */
uint32_t *descendants_numbers(const char *path, size_t *count);
/* Opens a file of a process in /proc: of another thread where the first has ended and its files are
 * empty. A descriptor, or -1. */
int descendants_open(uint32_t pid, const char *name);
/* Reads such a file to its end. */
char *descendants_read(uint32_t pid, const char *name, size_t *size);

/* What a person calls a process, as shim/process/program.h has it: cam.py, not python3. */
char *descendants_name(uint32_t pid);

/* The value of a variable in the environment with which a process was started. NULL: it is not set.
 */
char *descendants_variable(uint32_t pid, const char *variable);
