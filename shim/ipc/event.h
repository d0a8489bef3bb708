/*
 * event.h - events that processes share, and the second destroy, of which the driver dies.
 *
 * Every event that is destroyed is remembered by address until one is created there again; only
 * those made for other processes, or opened from them, are recorded while they live, and what this
 * process has opened is published as it is for memory. Needs no scope. Thread-safe.
 */
#pragma once

#include "registry/registry.h"

/* After the driver's success. */
void gps_event_created(uint64_t event, bool interprocess);
void gps_event_exported(uint64_t event, const uint8_t handle[GPS_HANDLE_BYTES]);
void gps_event_opened(uint64_t event, const uint8_t handle[GPS_HANDLE_BYTES]);

/* A context is destroyed, with every event made in it before the epoch. */
void gps_event_purge(uint64_t context, uint32_t epoch);

/* The program destroys an event with the driver's `destroy`. Returns the code for the program. */
typedef int gps_event_fn(uint64_t event);
int gps_event_destroy(uint64_t event, gps_event_fn *destroy);
