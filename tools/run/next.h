/* next.h - the command line that a user types next. */
#pragma once

/* Prints on stderr the command with these rules: "Next: gpushare run -c FILE -- CMD". `path` NULL
 * or "-": they were printed, and are in no file yet. */
void next_tell(const char *before, char **command, const char *path);
