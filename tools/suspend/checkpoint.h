/*
 * checkpoint.h - the driver's calls that checkpoint another process.
 *
 * libcuda is opened by name, and not linked. Where NVML does not tell the free memory, a context of
 * ours is made for a moment, and ends before a process is restored. Codes are the driver's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/region.h"

enum checkpoint_state {
    CHECKPOINT_RUNS = 0,
    CHECKPOINT_LOCKED = 1,
    CHECKPOINT_AWAY = 2,
    CHECKPOINT_LOST = 3,
};

/* Opens the driver, once. NULL, or why it cannot be used, and what to do. */
const char *checkpoint_open(void);
/* 0, and the state of the process. */
int checkpoint_state(uint32_t pid, enum checkpoint_state *state);
int checkpoint_lock(uint32_t pid, uint64_t timeout);
int checkpoint_take(uint32_t pid);
int checkpoint_restore(uint32_t pid);
int checkpoint_unlock(uint32_t pid);
/* The free bytes of a GPU; a UUID of zeros: of the GPU with the least. */
bool checkpoint_room(const uint8_t device[GPS_UUID_BYTES], uint64_t *bytes);
/* The UUID of a GPU by its ordinal. False: there is none. */
bool checkpoint_gpu(int ordinal, uint8_t device[GPS_UUID_BYTES]);
/* What a code means here. */
const char *checkpoint_meaning(int code);
