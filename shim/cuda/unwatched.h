/*
 * unwatched.h - functions of the driver that nobody here knows: neither hooked nor harmless.
 *
 * A program that merges, or is audited, gets a stub in place of such a function, which knows no ABI
 * (stubs.S). Its call is counted, and before the function runs all memory of merge rules becomes
 * plain (merge/writable.h). Where more are looked up than there are stubs, the look-up counts as
 * the call. Any thread.
 */
#pragma once

/* What to hand out for such a function, by the name for which the driver has it. */
void *gps_unwatched_stand_in(const char *name, void *function);
