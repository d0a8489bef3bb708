/* screen.h - the usage in a terminal, refreshed until q is pressed. */
#pragma once

#include "usage.h"

/* Returns the exit status; errors are said on stderr. */
int screen_run(struct usage *usage, struct usage_order order, uint64_t interval);
