/*
 * clock.h - the realtime and the monotonic clock, in nanoseconds. Never fails; async-signal-safe.
 */
#pragma once

#include <stdint.h>
#include <time.h>

#define GPS_SECOND UINT64_C(1000000000)
#define GPS_MS     UINT64_C(1000000)

static inline uint64_t gps_clock_read(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * GPS_SECOND + (uint64_t)now.tv_nsec;
}

/* The time of records, slots and reports. */
static inline uint64_t gps_clock_now(void) {
    return gps_clock_read(CLOCK_REALTIME);
}

/* The time of waits, whose length must not change when the clock is set. */
static inline uint64_t gps_clock_monotonic(void) {
    return gps_clock_read(CLOCK_MONOTONIC);
}

/* The time of that clock after `nanos` nanoseconds, as gps_thread_wait takes it. */
static inline struct timespec gps_clock_in(uint64_t nanos) {
    const uint64_t time = gps_clock_monotonic() + nanos;
    return (struct timespec){.tv_sec = (time_t)(time / GPS_SECOND),
                             .tv_nsec = (long)(time % GPS_SECOND)};
}
