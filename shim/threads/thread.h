/* thread.h - threads of ours that work for themselves in the program's process. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Starts a thread, detached. Call inside a gps_scope: that has blocked signals, and the thread
 * inherits the mask, so the program's handlers never run there. False: it could not be started. */
bool gps_thread_start(void *(*fn)(void *arg), void *arg);

/* A program may end its main thread by pthread_exit. Then glibc ends the process with its last
 * thread, which would be ours for ever. So from then on, and not before, a thread looks every 100
 * ms whether only threads of ours are left, and calls exit(0) with the main thread's mask.
 *
 * If the main thread calls this, its end is noticed. It makes no system call, because every program
 * pays for it as it begins. Needs no scope. */
void gps_thread_note_main(void);

/* Waits for a condition up to a time of CLOCK_MONOTONIC: 0 or ETIMEDOUT. By pthread_cond_clockwait,
 * which came with glibc 2.30; before that by the wall clock, which may be set meanwhile. */
int gps_thread_wait(pthread_cond_t *condition, pthread_mutex_t *lock, const struct timespec *until);
int gps_thread_wait_by_wall_clock(pthread_cond_t *condition, pthread_mutex_t *lock,
                                  const struct timespec *until);

#ifndef __cplusplus /* for a test, which needs none of these */
/* Waits until *busy is false: `timeout` ns at most, because a busy thread may be in the driver,
 * which may never return. False: it is still true. */
bool gps_thread_await(const _Atomic bool *busy, uint64_t timeout);
/* Whether a thread of this process, by its number, has ended. */
bool gps_thread_is_dead(int thread);
void gps_thread_reset(void); /* in a forked child */
#endif
