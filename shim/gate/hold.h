/*
 * hold.h - the moments in which the merger swaps blocks, also where the device is never idle.
 *
 * New launches and copies are held back while what is queued runs; the device works meanwhile. When
 * it is idle, blocks are swapped. A hold takes 20 ms at most until then. It is given up once work
 * has been held for 2 ms whose stream is empty, or a thread has waited as long for gps_swap_lock.
 * Of any 200 ms, holds that succeed leave the device idle, and those that fail a stream empty, for
 * at most 4 ms in all.
 *
 * Streams end their work at different times. So work of the streams that took long in earlier holds
 * is held first, one stream after the other, while the others go on. When those are empty all work
 * is held. Two streams whose kernels all take longer than 2 ms rarely end together: then most holds
 * fail, and they become rarer.
 *
 * One thread calls these functions, inside a gps_scope and without a lock.
 */
#pragma once

#include "swap.h"

/* Until gps_hold_end nothing of the program's uses a block, and the thread has gps_swap_lock.
 * False: the device did not become idle, a graph is captured, the kernel refuses membarrier, it is
 * too soon, or `stop` is set, after which the driver is not called. */
bool gps_hold_begin(const _Atomic bool *stop);
void gps_hold_end(void);

/* How many ns it is too soon after holds for which work waited; and after one that failed. */
uint64_t gps_hold_rest(void);
uint64_t gps_hold_wait(void);
/* The last holds failed, one after the other, so many that the device is never idle. */
bool gps_hold_is_vain(void);
