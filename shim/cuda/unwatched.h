/*
 * unwatched.h - functions of the driver that are newer than this library, counted in an audit.
 *
 * An audit does not know what they do, and says at its end that they were called. What is handed
 * out in their place knows no ABI (stubs.S). Any thread.
 */
#pragma once

/* What to hand out for a function that the driver has found for this version of CUDA, by its name:
 * itself, or what counts its calls. */
void *gps_unwatched_stand_in(const char *name, int version, void *function);
