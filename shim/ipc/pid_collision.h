/*
 * pid_collision.h - handles of processes that have this one's pid in another pid namespace.
 *
 * The programs of two containers are often both process 1. The driver knows a process's own handles
 * by the pid in them, and answers 201 to those of another process with the same number. It opens
 * them when the handle carries a pid that this process does not have.
 */
#pragma once

#include "registry/registry.h"

/* The driver has answered 201 to an open. Where the directory proves that a living process with the
 * same pid exported the handle, opens it with another pid, the same one each time, so that opens
 * are counted as always. Returns the driver's code; still 201 for every other handle. Changes
 * nothing in mode audit. */
int gps_pid_collision_open(const struct gps_import *import, uint64_t *pointer);
