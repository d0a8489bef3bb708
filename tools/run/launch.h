/*
 * launch.h - prepares to run a command with the library preloaded.
 *
 * Every known obstacle is reported before the command starts: a broken configuration is an error, a
 * program that cannot be preloaded a warning. The command inherits the environment of this process.
 */
#pragma once

#include <stdbool.h>

/* Sets a variable of the environment. */
void launch_set(const char *variable, const char *value);

/* The configuration of the command line. False: said on stderr. */
bool launch_config(const char *file);

/* False: said on stderr, and nothing must run. `config` and `mode`: the options of the command
 * line, or NULL. Checks the configuration with all variables that are set by then. */
bool launch_prepare(const char *config, const char *mode, const char *command);

/* Says why the command could not be executed; the tool's exit status. */
int launch_failed(const char *command, int error);
