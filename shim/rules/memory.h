/*
 * memory.h - what an allocation and a free mean. The way of one cudaFree is gps_memory_free, top
 * down.
 *
 * Needs no scope. Thread-safe.
 */
#ifndef GPS_MEMORY_H
#define GPS_MEMORY_H

#include "ipc/export.h"

/* The driver has allocated. */
void gps_memory_allocated(uint64_t pointer, uint64_t size);

/* The program frees `pointer` with the driver's `release`. Returns the code for the program. */
int gps_memory_free(uint64_t pointer, struct gps_release release);

/* A context goes, with all that was allocated and opened in it. `destroy` is the driver's call, and
 * tells whether the context is gone. `settle`: results are handed over and importers waited for
 * before it, as at exit; not where the call may well leave the context to others. */
typedef int gps_destroy_fn(void *arg, bool *gone);
int gps_memory_destroy(uint64_t context, bool settle, gps_destroy_fn *destroy, void *arg);

#endif
