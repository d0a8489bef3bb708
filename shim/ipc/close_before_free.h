/*
 * close_before_free.h - carries out the program's free of an exported region.
 *
 * The memory is freed at once, after importers, later, or never, as policy says. Any thread.
 */
#pragma once

#include "registry/registry.h"

/* The driver's free as the program called it. */
struct gps_release {
    int (*call)(uint64_t pointer, void *stream);
    void *stream; /* of a free in its order: explicit */
    bool ordered; /* on a stream: it waits for nothing */
};

/* The program frees an exported allocation, which the caller has taken from the registry; its
 * region is LIVE. A free at once calls `release`. A region that must wait goes to deferred.h. If
 * the memory stays, the registry has the allocation again. Returns the code. No scope. */
int gps_close_before_free(const struct gps_alloc *alloc, struct gps_release release);
