/*
 * dependencies.h - what a loaded object needs, in the order in which the dynamic linker searches
 * it.
 */
#pragma once

#include "module.h"

/* Everything that `module` needs (DT_NEEDED) and what that needs, breadth first and each once,
 * until fn returns true; false if none did. Takes the linker's lock and maps scratch memory; calls
 * no malloc, keeps errno. */
bool gps_dependencies_each(const struct gps_module *module, gps_module_fn *fn, void *arg);
