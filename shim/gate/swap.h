/*
 * swap.h - the moments in which blocks that the program uses may be unmapped.
 *
 * gps_swap_try, or gps_stall_begin (stall.c), closes the gate and waits until the device is idle.
 * From then on nothing of the program's uses a block until gps_swap_end, or gps_stall_end. In
 * between the caller only maps and unmaps, and loads our kernels once. It runs none and does not
 * ask the keeper, because the program's threads wait at the gate; only where the program may write
 * memory up to that moment it is copied, which takes less than mapping it. Kernels of ours that
 * read blocks run outside a swap, and gps_swap_lock keeps the blocks where they are meanwhile.
 *
 * All are called inside a gps_scope. A thread takes gps_swap_lock first, then closes the gate, and
 * takes gps_area_lock last.
 */
#pragma once

#include "streams.h"

/* The thread that has this lock may read blocks: no other unmaps one, or destroys its context.
 * gps_swap_lock waits with the program's signals let in, also while a context is destroyed. */
void gps_swap_lock(void);
bool gps_swap_try_lock(void);                /* false: it would wait */
bool gps_swap_lock_within(uint64_t timeout); /* ns; false: it would wait for longer */
void gps_swap_unlock(void);
bool gps_swap_is_wanted_since(uint64_t since); /* a thread has waited for the lock */
/* Around the driver's call that destroys a context, which may wait for a kernel: no lock is held
 * meanwhile. gps_swap_forbid waits for the lock's holder; gps_swap_lock waits until
 * gps_swap_permit, or until the thread has left the call by longjmp and comes here, or ends. */
void gps_swap_forbid(void);
void gps_swap_permit(void);
/* This thread is in no call that destroys a context. */
void gps_swap_return(void);
/* Waits for the work of a context, without a lock, with the program's signals let in. */
void gps_swap_await_context(uint64_t context);
/* At the end of the process: waits until no thread has the lock, for `timeout` ns at most. */
void gps_swap_await(uint64_t timeout);

#define GPS_SWAP_PAUSE UINT64_C(2000000) /* ns; so long a swap may take */
void gps_swap_end(void);

/* --- where a swap must take place, even during a capture --- */

/* How tries went: all zero before the first. */
struct gps_swap_tries {
    unsigned failed;
    bool looked;                    /* the last one closed the gate, */
    enum gps_streams_answer answer; /* and this was known */
    struct gps_stream busy;         /* of this stream */
};

/* With gps_swap_lock: closes the gate and waits until the device is idle, for 20 ms at most.
 * Meanwhile no other thread opens the gate. */
bool gps_swap_try(struct gps_swap_tries *tries);
/* The same, if the device is idle just now. */
bool gps_swap_if_idle(void);
/* After an attempt that failed, without a lock: waits until it is worth another one, with the
 * program's signals let in and the gate open. A device that is given work all the time becomes idle
 * only if new work is held up. So the first tries follow each other closely, and in between each
 * thread passes the gate once. Then the stream that was busy is waited for, for a second at most.
 */
void gps_swap_wait(struct gps_swap_tries *tries);
/* Whether that wait takes a millisecond. */
bool gps_swap_is_soon(const struct gps_swap_tries *tries);

void gps_swap_reset(void); /* in a forked child */

/* --- stall.c: swaps of the merger, also where the device is never idle --- */

/* A stall keeps new launches and copies at the gate while queued work runs; the device works
 * meanwhile. When it is idle, blocks are swapped. A stall takes 20 ms at most until then. It is
 * given up once work whose stream is empty has waited for as long as the patience is, or a thread
 * waits for gps_swap_lock. The patience is 0.5 ms at first. Each stall that is given up for that
 * doubles it, up to 6 ms; each that succeeds takes an eighth off. Once streams were empty for 4 ms
 * in all within 200 ms, no stall begins before these are over.
 *
 * Streams end their work at different times. So work of the streams that took long in earlier
 * stalls waits first, one stream after the other, while other work goes on. When those are empty
 * all work waits. Two streams whose kernels all take longer than 6 ms rarely end together: then
 * most stalls fail, and they become rarer. One thread calls these functions, inside a gps_scope and
 * without a lock. */

/* Until gps_stall_end nothing of the program's uses a block, and the thread has gps_swap_lock.
 * False: the device did not become idle, a graph is captured, the kernel refuses membarrier, it is
 * too soon, or `stop` is set, after which the driver is not called. */
bool gps_stall_begin(const _Atomic bool *stop);
void gps_stall_end(void);

/* How many ns a new stall waits after stalls for which work waited; and after one that failed. */
uint64_t gps_stall_rest(void);
uint64_t gps_stall_wait(void);
/* So many stalls in a row failed that the device is never idle. */
bool gps_stall_is_failing(void);
