/* vendor.h - the vendors' runtimes, and the library that is preloaded into programs of each. */
#pragma once

#include <stdbool.h>

enum runtime { RUNTIME_CUDA, RUNTIME_HIP, RUNTIMES };

const char *vendor_option(enum runtime runtime);  /* "cuda" */
const char *vendor_name(enum runtime runtime);    /* "CUDA" */
const char *vendor_library(enum runtime runtime); /* "libgpushare.so" */
const char *vendor_driver(enum runtime runtime);  /* how the name of its own library begins */

/* Finds the runtime of this name, as "hip". */
bool vendor_find(const char *option, enum runtime *runtime);
