/* vendor.h - the vendors' runtimes, and the library that is preloaded into programs of each. */
#pragma once

#include <stdbool.h>

enum runtime { RUNTIME_CUDA, RUNTIME_HIP, RUNTIMES };

extern const struct vendor {
    const char *option;  /* "cuda" */
    const char *name;    /* "CUDA" */
    const char *library; /* "libgpushare.so" */
    const char *driver;  /* how the name of its own library begins */
} vendors[RUNTIMES];

/* Finds the runtime of this name, as "hip". */
bool vendor_find(const char *option, enum runtime *runtime);

/* --- runtime_choice.c: which runtime a command uses --- */

/* A program that is linked with one says so. Others, as an interpreter, load theirs when they run:
 * then it is what the machine has. */

/* What --runtime says (NULL: not given), or the command needs (NULL: none), or the machine has:
 * CUDA where that is unknown. False: the option names none, and stderr says so. */
bool runtime_choose(const char *option, const char *command, enum runtime *runtime);

#define RUNTIME_OPTION                                                                             \
    { "runtime", 0, "NAME", "cuda or hip, instead of what CMD needs" }
