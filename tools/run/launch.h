/*
 * launch.h - prepares to run a command with the library preloaded.
 *
 * Every known obstacle is reported before the command starts: a broken configuration is an error, a
 * program that cannot be preloaded a warning. The command inherits the environment of this process.
 */
#pragma once

#include <stdbool.h>

#include "vendor.h"

/* Sets a variable of the environment. */
void launch_set(const char *variable, const char *value);

/* Sets the configuration that the command line names. False: stderr says why not. */
bool launch_config(const char *file);

/* Checks the configuration with all variables set by then, and sets LD_PRELOAD. `config` and `mode`
 * are options, or NULL. False: stderr says why, and nothing must run. */
bool launch_prepare(const char *config, const char *mode, enum runtime runtime,
                    const char *command);

/* Becomes the command as execvp does, but leaves no binary file to the shell that the kernel does
 * not run. Returns the error: ENOEXEC for such a file. */
int launch_execute(char **command);

/* Says on stderr why the command could not be executed. Returns the tool's exit status. */
int launch_failed(const char *command, int error);
