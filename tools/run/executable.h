/*
 * executable.h - finds an executable, and judges whether the library can be preloaded into it.
 *
 * The dynamic loader reads LD_PRELOAD, and only for programs that use it and are not privileged. So
 * a statically linked, setuid or foreign program runs, but never loads the library.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

/* The path at which execvp would find the command: 0, or -ENOENT or -EACCES. */
int executable_find(const char *command, char path[PATH_MAX]);

/* Why a preloaded library would not be loaded into the program at `path`, as a phrase that follows
 * its name; false: no reason is known. A script is judged by its interpreter. */
bool executable_obstacle(const char *path, char *why, unsigned size);
