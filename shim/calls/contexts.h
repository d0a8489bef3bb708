/*
 * contexts.h - what a new context, access between devices, and the end of a context mean.
 *
 * A context ends with all memory that was allocated and opened in it (lifecycle/teardown.h). Any
 * thread may call the functions, and none needs a scope. The codes are the driver's.
 */
#pragma once

#include <stdint.h>

/* The program has made a context on a device, or has one that was there. */
void gps_context_made(uint64_t context, int device);

/* The program has let the current context reach the memory of another one. */
void gps_context_peer_enabled(uint64_t peer);

/* The driver's call. `which` is a context or a device. */
typedef int gps_context_end_fn(uint64_t which);

/* How the program ends a context, or a device's primary one, which its last use ends. */
enum gps_context_ending {
    GPS_CONTEXT_DESTROY,
    GPS_CONTEXT_DETACH,
    GPS_DEVICE_RESET,
    GPS_DEVICE_RELEASE
};
int gps_context_end(uint64_t which, gps_context_end_fn *call, enum gps_context_ending how);
/* The program destroys a green context, whose `context` is a part of the primary one: memory that
 * was allocated in the green context is the primary one's. */
int gps_context_destroy_green(uint64_t green, uint64_t context, gps_context_end_fn *destroy);
