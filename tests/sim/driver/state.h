/*
 * Whether the library may be used in this process, and the lock over all that it knows of contexts
 * and memory. The lock is never held while waiting for a stream or a host function.
 */
#pragma once

#include "abi.h"

/* 0; 3 before cuInit and in a fork child of a process that called it; 4 in exit after teardown. */
CUresult state_check(void);
/* The same where a test has not told another answer: with GPUSHARE_SIM_MEMORY_CODE, which is set
 * when the first call comes, each call for memory of cuMemCreate and pools answers that, and does
 * nothing; while it is empty it does not. */
CUresult state_asked(void);
void state_lock(void);
void state_unlock(void);
static inline void state_unlock_at(const char *end) {
    state_unlock();
}
/* Locked from here to the end of the block. */
#define STATE_LOCKED()                                                                             \
    state_lock();                                                                                  \
    const char locked_ __attribute__((unused, cleanup(state_unlock_at))) = 0
/* The real one waits in ioctl, which is no point of cancellation, nor is anything else of it.
 * Returns what to set again. */
int state_uncancelled(void);
/* For tests: something happens to the thread in the middle of a call. So many milliseconds as the
 * variable says; whether it is set. */
bool state_pause(const char *variable);
/* A number that no other object of this process has. */
uint64_t state_serial(void);
/* Gives the lock up until state_changed is called, and takes it again. */
void state_wait(void);
void state_changed(void);
