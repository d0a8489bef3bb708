/*
 * clock.h - the realtime and the monotonic clock, in nanoseconds. Never fails; async-signal-safe.
 */
#pragma once

#include <stdint.h>
#include <time.h>

#define GPS_SECOND UINT64_C(1000000000)

static inline uint64_t gps_clock_read(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * GPS_SECOND + (uint64_t)now.tv_nsec;
}

/* The time of records, slots and reports. */
static inline uint64_t gps_clock_now(void) {
    return gps_clock_read(CLOCK_REALTIME);
}

/* For waits, whose length must not change when the clock is set. */
static inline uint64_t gps_clock_monotonic(void) {
    return gps_clock_read(CLOCK_MONOTONIC);
}

/* The same clock in some seconds, as gps_thread_wait takes it. */
static inline struct timespec gps_clock_in(time_t seconds) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_sec += seconds;
    return time;
}
