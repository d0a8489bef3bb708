/*
 * check_warnings.h - warns of what a configuration may contain, but hardly anybody intends.
 */
#pragma once

#include "config/config.h"

/* Prints "FILE:LINE: warning: ..." on stderr for each: an import that nobody exports, sides that
 * cannot meet, a rule that an earlier one hides, a key without effect, a log that cannot be
 * written. */
void check_warn(const char *file, const struct gps_config *config);
