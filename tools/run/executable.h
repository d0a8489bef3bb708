/*
 * executable.h - what an executable is, as far as preloading goes.
 *
 * The dynamic loader reads LD_PRELOAD, and only for programs that use it and are not privileged. So
 * a statically linked, setuid or foreign program runs, but never loads the library.
 */
#ifndef EXECUTABLE_H
#define EXECUTABLE_H

#include <limits.h>
#include <stdbool.h>

/* Where execvp would find the command: 0, or -ENOENT or -EACCES. */
int executable_find(const char *command, char path[PATH_MAX]);

/* Why a preloaded library would not be loaded into the program at `path`, as a phrase that follows
 * its name; false: nothing is known against it. A script is judged by its interpreter. */
bool executable_obstacle(const char *path, char *why, unsigned size);

/* Looks for libgpushare.so: GPUSHARE_LIBRARY, beside this executable, in the lib directories beside
 * its directory, where it is installed. The path is absolute. False: `path` then lists, for a
 * message, where it was looked for. */
bool library_find(char path[PATH_MAX]);

/* False where LD_PRELOAD could not hold the path: blanks and colons separate there. */
bool library_preloadable(const char *path);

/* The value that LD_PRELOAD must have: the library first, then what stood there. malloc'ed. */
char *library_preload_value(const char *library, const char *existing);

#endif
