/*
 * control_group.h - main memory and processors that a process may still use, by the machine and its
 * control groups (version 2).
 *
 * No allocation; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Bytes of main memory that are left: the least of the machine's and each of the process's groups';
 * pid 0 is this process. False: it is not known. */
bool gps_main_memory_left(uint32_t pid, uint64_t *bytes);
/* The bytes that a process has in main memory or swapped out. */
bool gps_main_memory_of(uint32_t pid, uint64_t *bytes);

/* How many processors this process may use at once; 1 or more. */
unsigned gps_processors_left(void);
