/*
 * runtime_choice.h - which vendor's runtime a command uses.
 *
 * A program that is linked with one says so. Others, as an interpreter, load theirs when they run:
 * then it is what the machine has.
 */
#pragma once

#include "vendor.h"

/* What --runtime says (NULL: it was not given), or what the command needs (NULL: there is none), or
 * what the machine has: CUDA where that cannot be told. False: the option names none, and stderr
 * says so. */
bool runtime_choose(const char *option, const char *command, enum runtime *runtime);

#define RUNTIME_OPTION                                                                             \
    { "runtime", 0, "NAME", "cuda or hip, instead of what CMD needs" }
