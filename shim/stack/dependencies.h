/*
 * dependencies.h - the dependencies of a loaded object, in the search order of the dynamic linker.
 */
#pragma once

#include "module.h"

/* Calls fn for the dependencies of `module` (DT_NEEDED) and for theirs, breadth first and each
 * once, until fn returns true. False: fn never did. Takes the linker's lock and maps scratch
 * memory. Calls no malloc and preserves errno. */
bool gps_dependencies_each(const struct gps_module *module, gps_module_fn *fn, void *arg);
