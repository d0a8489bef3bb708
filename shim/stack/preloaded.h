/*
 * preloaded.h - the libraries that are preloaded beside this one.
 *
 * The linker's list has the program, then what is preloaded in its order (LD_PRELOAD, then
 * /etc/ld.so.preload), then what the program needs. The first two never change. Nothing here
 * allocates, takes a lock, or changes errno or dlerror. Safe from any thread.
 */
#pragma once

#include "module.h"

enum gps_preloaded { GPS_PRELOADED_BEFORE, GPS_PRELOADED_BEHIND };

/* Calls fn for each of those that stand before this library, or behind it, in their order, until fn
 * returns true. False: fn never did. */
bool gps_preloaded_each(enum gps_preloaded where, gps_module_fn *fn, void *arg);

/* The address of a symbol in the first of those behind this library, or behind `after` among them,
 * that defines it without a version: what any reference finds. NULL: none does. */
void *gps_preloaded_symbol(const char *name, const struct gps_module *after);
