/*
 * namesake.h - handles of processes that have this one's pid in another pid namespace.
 *
 * The programs of two containers are often both process 1. The driver knows a process's own handles
 * by the pid in them, at byte 8, and answers 201 to those of a namesake. It opens them with a pid
 * that this process does not have.
 */
#pragma once

#include "registry/registry.h"

/* The driver has answered 201 to an open. Where the directory proves that a living namesake
 * exported the handle, opens it with another pid, the same one each time, so that opens are counted
 * as always. The driver's code; still 201 for every other handle. Changes nothing in mode audit. */
int gps_namesake_open(const struct gps_import *import, uint64_t *pointer);
