/* clock.c - see clock.h. */
#include "clock.h"

#include <time.h>

static uint64_t nanoseconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * GPS_SECOND + (uint64_t)now.tv_nsec;
}

uint64_t gps_clock_now(void) {
    return nanoseconds(CLOCK_REALTIME);
}

uint64_t gps_clock_monotonic(void) {
    return nanoseconds(CLOCK_MONOTONIC);
}
