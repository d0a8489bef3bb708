/* names.h - the hooked names, as a list of strings. */
#ifndef NAMES_H
#define NAMES_H

#include <stddef.h>

static const char *const driver_names[] = {
#define DRIVER(kind, name, parameters, arguments) #name,
#include "hooks.def"
};
enum { DRIVER_NAMES = sizeof driver_names / sizeof *driver_names };

#endif
