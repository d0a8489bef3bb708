/*
 * harmless.h - which functions of the driver do nothing to memory that a rule has taken.
 *
 * It is asked inside dlsym, before constructors and in sanitizer runtimes that are not up yet
 * (doors/resolver.h).
 */
#pragma once

#include <stdbool.h>

/* Whether harmless.def has the name, `old`: also as that of an old ABI. */
bool gps_harmless_is(const char *name, bool old);
