/*
 * pending_signal.h - a signal that the library's own system call raised.
 */
#pragma once

#include <errno.h>
#include <signal.h>
#include <time.h>

/* Discards a signal that is pending for this thread, where it is blocked. Nothing happens where it
 * is ignored and so never was pending. Changes errno. */
static inline void gps_signal_discard(int number) {
    const struct timespec now = {0, 0};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    while (sigtimedwait(&set, NULL, &now) < 0 && errno == EINTR)
        continue;
}
