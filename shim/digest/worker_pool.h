/*
 * worker_pool.h - threads that help a call to hash memory.
 *
 * The caller does a part of the work, so it never waits for a thread to start or to wake up: when
 * its own part is done it waits only for the threads that are at work, and a late thread finds
 * nothing to do. An idle thread waits a second for the next call and then ends, because starting
 * threads for every copy would cost more than the hashing. There are fewer threads than cores. They
 * have small stacks, block all signals but those of faults, and make no driver calls. If none can
 * be started, the caller works alone.
 *
 * A caller wakes two threads, and each of them two more: a wake-up takes its thread's time.
 */
#pragma once

#include <stddef.h>

struct gps_pool {
    void (*work)(void *arg); /* called at once by several threads, once each */
    void *arg;
    size_t wanted, working; /* threads that may still join, and threads at work */
    struct gps_pool *next;
};

/* Has up to `wanted` threads call pool->work. Call it inside a gps_scope, whose signal mask new
 * threads inherit. The caller keeps the pool until gps_worker_pool_join returns. */
void gps_worker_pool_call(struct gps_pool *pool, size_t wanted);
/* No more threads join; returns when none is at work. */
void gps_worker_pool_join(struct gps_pool *pool);

void gps_worker_pool_reset(void); /* in a forked child */
