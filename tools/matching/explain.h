/* explain.h - what a command allocates, for those who ask besides `gpushare explain`. */
#pragma once

/* Runs the command with the rules of a file, and keeps what it allocated in another one (fit.h).
 * Returns the command's exit status, or a tool_status of `run`; stderr says why it failed. */
int explain_keep(char **command, const char *config, const char *path);
