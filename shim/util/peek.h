/*
 * peek.h - reads memory of this process that may not be mapped.
 *
 * The kernel copies it, so an address that is not mapped is an error and no fault. No lock, no
 * state; async-signal-safe; keeps errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies all bytes. False: not all of them can be read, and the contents of `out` are undefined. */
bool gps_peek(uintptr_t address, void *out, size_t size);

struct gps_piece {
    uintptr_t address;
    void *out;
    size_t size;
};
enum { GPS_PIECES = 4 };
/* The same for up to GPS_PIECES at once. Returns how many are whole, from the first on; the
 * contents of the others are undefined. */
unsigned gps_peek_all(const struct gps_piece *pieces, unsigned count);
