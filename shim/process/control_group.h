/*
 * control_group.h - what is left for a process: main memory and processors, of the machine and of
 * its control groups (version 2).
 *
 * No allocation; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Bytes of main memory: the least of what the machine has available and of what each of its groups
 * leaves; 0 is this process. False: it is not known. */
bool gps_main_memory_left(uint32_t pid, uint64_t *bytes);
/* What a process has in main memory or swapped out. */
bool gps_main_memory_of(uint32_t pid, uint64_t *bytes);

/* How many processors this process may use at once; 1 or more. */
unsigned gps_processors_left(void);
