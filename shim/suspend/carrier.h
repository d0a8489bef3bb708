/*
 * carrier.h - carries memory between the GPU and main memory, by as many threads as are allowed.
 *
 * Each thread has stages of pinned memory: the driver copies to and from those at the speed of the
 * bus, and the thread between them and the process's main memory. Both last for one call.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct gps_load {
    char *bytes;            /* NULL: the bytes are a file's */
    uint64_t address, size; /* at most 32 MiB: what a thread takes at once */
    int file;
    uint64_t at; /* where they begin in the file */
};

enum gps_way { GPS_WAY_OUT, GPS_WAY_BACK };

/* Returns when all loads are carried, or with the driver's code for a copy that failed;
 * OUT_OF_MEMORY where a file cannot be read or written. By the thread of suspension.c, inside a
 * scope for driver calls that has entered a context of the memory's GPU. */
int gps_carry(const struct gps_load *loads, size_t count, enum gps_way way);
