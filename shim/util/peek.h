/*
 * peek.h - reads memory of this process that may not be there.
 *
 * The kernel copies it, so an address that is not mapped is an error and no fault. No lock, no
 * state; async-signal-safe; keeps errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies all bytes. False: not all of them can be read, and `out` has any bytes. */
bool gps_peek(uintptr_t address, void *out, size_t size);
