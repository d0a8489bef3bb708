/*
 * launch.h - what comes before a command runs with the library preloaded.
 *
 * Whatever would keep the library from doing what was asked is said before the command starts: a
 * broken configuration is an error, a program that cannot be preloaded a warning. The environment
 * that the command will have is this process's own.
 */
#ifndef LAUNCH_H
#define LAUNCH_H

#include <stdbool.h>

/* False: said on stderr, and nothing must run; here and below. */
bool launch_set(const char *variable, const char *value);

/* `config` and `mode`: what the command line gave, or NULL. Call it after the launch_set that are
 * to be checked as well. */
bool launch_prepare(const char *config, const char *mode, const char *command);

/* Says why the command could not be executed; the tool's exit status. */
int launch_failed(const char *command, int error);

#endif
