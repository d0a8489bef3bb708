/*
 * swap.h - the moments in which blocks may be taken from under the program.
 *
 * gps_swap_begin closes the gate and waits until the device is idle; then nothing of the program's
 * uses a block until gps_swap_end. Only calls that map and unmap stand in between, no kernel and no
 * keeper: the program's threads wait at the gate. Kernels of ours that look at blocks run outside,
 * and gps_swap_lock keeps the blocks where they are meanwhile.
 *
 * Inside a gps_scope. Locks are taken in this order: gps_swap_lock, the gate, gps_area_lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Nobody unmaps a block of the program's, or destroys its context, while another looks at it. While
 * a context is destroyed gps_swap_lock waits with the program's signals let in. */
void gps_swap_lock(void);
void gps_swap_unlock(void);
/* Around the driver's call that destroys a context, which may wait for a kernel: no lock is held
 * meanwhile. gps_swap_forbid waits for those who have the lock; gps_swap_lock waits until
 * gps_swap_permit, or until the thread has left the call by longjmp and comes here, or ends. */
void gps_swap_forbid(void);
void gps_swap_permit(void);
/* At the end of the process: until nobody has the lock, or for `patience` ns. */
void gps_swap_await(uint64_t patience);

/* With gps_swap_lock. False: the device is not idle after `patience` ns, or a graph is captured. */
bool gps_swap_begin(uint64_t patience);
/* The same when it must be, also beside a capture. Nobody opens the gate meanwhile. A device that
 * gets ever new work is idle only if that is held up for longer than the work takes that it has: so
 * each attempt lasts twice as long as the one before. */
bool gps_swap_begin_surely(unsigned attempt);
void gps_swap_end(void);

void gps_swap_reset(void); /* in a forked child */
