/* names.h - the hooked names, as a list of strings. */
#ifndef NAMES_H
#define NAMES_H

#include <stddef.h>

static const char *const driver_names[] = {
#define DRIVER(kind, name, parameters, arguments) #name,
#include "hooks.def"
};
enum { DRIVER_NAMES = sizeof driver_names / sizeof *driver_names };

/* Those that are hooked only where a rule asks for it. */
__attribute__((unused)) static const char *const write_names[] = {
#define WRITE(name, parameters, arguments, what) #name,
#include "hooks.def"
};
enum { WRITE_NAMES = sizeof write_names / sizeof *write_names };

#endif
