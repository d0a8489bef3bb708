/*
 * worker_pool.h - threads that help with a call's work on memory: hashing.
 *
 * The caller works along, so a call never waits for a thread to start or to wake: when its own
 * part is done it waits for those at work, and a late thread finds nothing to do. The threads wait
 * a second for the next call, then end; starting them for every copy costs more than the hashing.
 * There are fewer of them than cores, with small stacks and signals blocked; where none can be
 * had the caller works alone. They make no calls of the driver's.
 *
 * A caller wakes two threads, and each that comes wakes two more: waking takes the time of the one
 * who does it.
 */
#pragma once

#include <stddef.h>

struct gps_pool {
    void (*work)(void *arg); /* called at once by several threads, once each */
    void *arg;
    size_t wanted, working; /* threads that may still come, and that are at it */
    struct gps_pool *next;
};

/* Calls up to `wanted` threads to pool->work; inside a gps_scope, whose signal mask they inherit.
 * The pool is the caller's, and stays where it is until gps_pool_join. */
void gps_pool_call(struct gps_pool *pool, size_t wanted);
/* Nobody comes any more; returns when nobody is at work. */
void gps_pool_join(struct gps_pool *pool);

void gps_pool_reset(void); /* in a forked child */
