/*
 * unwatched.h - unknown functions of the driver: neither hooked nor harmless.
 *
 * A program that merges, or is audited, gets a stub in place of such a function, which knows no ABI
 * (stubs.S). Its call is counted, and before the function runs all memory of merge rules becomes
 * plain (merge/writable.h). If there are more such functions than stubs, the look-up counts as the
 * call. Any thread.
 */
#pragma once

/* The address to hand out for such a function, by the driver's name for it. */
void *gps_unwatched_stand_in(const char *name, void *function);
