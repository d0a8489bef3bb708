/*
 * promise.h - memory that this process has allocated for its program, and not got yet.
 *
 * Memory that a merge rule with quiet = 0 took has none before it is touched. So a promise is
 * published, a slot for each GPU in this process's file in procs/, and ends with its lease. Who
 * makes one publishes it first, as a claim, and then adds up those of all, so of two who want the
 * same room at least one sees the other. A claim becomes a promise, or memory, or nothing, at once.
 * What blocks get is published after they have got it: for a moment it counts twice, and never not
 * at all.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "directory/processes.h"

/* Before the first reference. */
void gps_promise_start(void);

/* More is promised, or less. One thread at a time, inside a gps_scope. 0, or -errno: the others do
 * not see a promise that has grown, and it is not made. What has shrunk is published again with the
 * next change. */
int gps_promise_change(const uint8_t gpu[GPS_UUID_BYTES], int64_t bytes);
/* The same of what is claimed. */
int gps_promise_claim(const uint8_t gpu[GPS_UUID_BYTES], int64_t bytes);

/* What this process has promised and claims. The same thread. */
struct gps_promises gps_promise_own(const uint8_t gpu[GPS_UUID_BYTES]);
/* That of all other processes, or of all with this one. -errno: that of a process is not known, and
 * *sum is that of the rest. Any thread, inside a gps_scope. */
int gps_promise_others(const uint8_t gpu[GPS_UUID_BYTES], struct gps_promises *sum);
int gps_promise_all(const uint8_t gpu[GPS_UUID_BYTES], struct gps_promises *sum);
/* Whether anybody ever made one, by one system call. */
bool gps_promise_any(void);

void gps_promise_reset(void); /* in a forked child */
