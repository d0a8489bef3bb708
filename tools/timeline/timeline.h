/*
 * timeline.h - a history as a page for a browser, or as the trace events that Perfetto opens; and
 * what `timeline` has in common with `audit`.
 *
 * No function checks whether `out` could be written: that is left to the caller.
 */
#pragma once

#include <stdio.h>

#include "history.h"

/* Writes one file that loads nothing. `debug_directory` is as in symbol.h. */
void timeline_page(FILE *out, const struct history *history, const char *debug_directory);
void timeline_perfetto(FILE *out, const struct history *history);
