/*
 * contexts.h - what the driver's start, access between devices, and the end of a context mean.
 *
 * A context ends with all that was allocated and opened in it (lifecycle/teardown.h). Any
 * thread may call the functions, and none needs a scope. The codes are the driver's.
 */
#pragma once

#include <stdint.h>

/* The driver has been initialised. */
void gps_context_driver_ready(void);

/* The program has made a context on a device, or has one that was there. */
void gps_context_made(int device);

/* The program has let the current context reach the memory of another one. */
void gps_context_peer_enabled(uint64_t peer);

/* The driver's call. `which` is a context or a device. */
typedef int gps_context_end_fn(uint64_t which);

/* The program destroys a context. */
int gps_context_destroy(uint64_t context, gps_context_end_fn *destroy);
/* The program ends one of its uses of a context; the last one destroys it. */
int gps_context_detach(uint64_t context, gps_context_end_fn *detach);
/* The program destroys a green context, whose `context` is a part of the primary one: memory that
 * was allocated in it is that one's. */
int gps_context_destroy_green(uint64_t green, uint64_t context, gps_context_end_fn *destroy);
/* The program resets a device, which destroys its primary context. */
int gps_context_reset(int device, gps_context_end_fn *reset);
/* The program ends its use of a device's primary context; the last one destroys it. */
int gps_context_release(int device, gps_context_end_fn *release);
