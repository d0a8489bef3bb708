/*
 * clock.h - the realtime and the monotonic clock, in nanoseconds. Never fails; async-signal-safe.
 */
#pragma once

#include <stdint.h>

#define GPS_SECOND UINT64_C(1000000000)

/* CLOCK_REALTIME: the time of records, slots and reports. */
uint64_t gps_clock_now(void);
/* CLOCK_MONOTONIC: for waits, whose length must not change when the clock is set. */
uint64_t gps_clock_monotonic(void);
