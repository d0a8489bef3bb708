/*
 * close_before_free.h - the program frees a region: at once, after a wait, later, or not at all.
 *
 * Any thread.
 */
#pragma once

#include "registry/registry.h"

/* The driver's free as the program called it. */
struct gps_release {
    int (*call)(uint64_t pointer, void *stream);
    void *stream;
    bool ordered; /* on a stream: it waits for nothing */
};

/* The program frees an exported allocation, which the caller has taken from the registry: asks
 * policy, and frees with `release` if and when that is the answer. What must wait is handed to
 * deferred.h. Returns the code for the program. Needs no scope. */
int gps_close_before_free(const struct gps_alloc *alloc, struct gps_release release);
