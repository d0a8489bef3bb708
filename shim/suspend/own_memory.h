/*
 * own_memory.h - this process's own memory on the GPU, in main memory while it is suspended.
 *
 * All of it is copied before any of it is evicted, so that until then a failure costs nothing. Each
 * part is hashed on the GPU before and after it is copied, because calls that are not hooked may
 * write it meanwhile. The copies stay in main memory after a resume, within suspend_memory: a part
 * that has the same hash the next time is not copied again.
 *
 * By the thread of suspension.c alone, inside a scope for driver calls, without a lock, while the
 * calls of the program wait.
 */
#pragma once

#include "shared_memory.h"

/* Copies parts that were not copied yet; *bytes: their sum. False, and why: all is as before. */
bool gps_own_memory_copy(uint64_t *bytes, struct gps_text *why);
/* Evicts the copied memory. False, and why: a part of it may be evicted. */
bool gps_own_memory_evict(struct gps_text *why);
enum gps_taken gps_own_memory_take_again(struct gps_text *why);

/* Now and then while the program runs: keeps copies of `most` bytes (suspend_memory), and none of
 * memory that is gone. It needs no scope for driver calls. Returns the bytes that are kept. */
uint64_t gps_own_memory_keep(uint64_t most);
