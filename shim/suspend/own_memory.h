/*
 * own_memory.h - what this process has on the GPU for itself, in main memory while it is suspended.
 *
 * All of it is copied before any of it is let go of, so that until then a failure costs nothing.
 * Each part is hashed on the GPU before and after it is copied, because calls that are not hooked
 * may write it meanwhile. What was copied stays in main memory after a resume, within
 * suspend_memory: a part that has the same hash the next time is not copied again.
 *
 * By the thread of suspension.c alone, inside a scope for driver calls, without a lock, while the
 * calls of the program wait.
 */
#pragma once

#include "shared_memory.h"

/* Copies what was not copied yet; *bytes: how much that was. False, and why: all is as before. */
bool gps_own_memory_copy(uint64_t *bytes, struct gps_text *why);
/* Lets go of what was copied. False, and why: of some of it. */
bool gps_own_memory_evict(struct gps_text *why);
enum gps_taken gps_own_memory_take_again(struct gps_text *why);

/* Now and then while the program runs: keeps no more than that (suspend_memory), and nothing of
 * what is gone. It needs no scope for the driver. How much is kept. */
uint64_t gps_own_memory_keep(uint64_t most);
