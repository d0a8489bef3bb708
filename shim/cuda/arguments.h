/*
 * arguments.h - the pointers among a kernel's arguments.
 */
#pragma once

#include <stdint.h>

#include "driver.h"

/* Calls fn for each argument that is as wide as a pointer, with its number, from 1. A driver before
 * 12.4 does not tell what arguments a kernel takes: then there are none. `f` may be a CUkernel, as
 * it may for the launch. Any thread. */
void gps_arguments_each(CUfunction f, void **values, void **extra,
                        void (*fn)(uint64_t value, unsigned number));
