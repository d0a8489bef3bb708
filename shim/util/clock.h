/*
 * clock.h - the two clocks, in nanoseconds. Never fails; safe anywhere.
 */
#ifndef GPS_CLOCK_H
#define GPS_CLOCK_H

#include <stdint.h>

#define GPS_SECOND UINT64_C(1000000000)

/* CLOCK_REALTIME: the time of records, slots and reports. */
uint64_t gps_clock_now(void);
/* CLOCK_MONOTONIC: for waits, which must not last an hour when somebody sets the clock. */
uint64_t gps_clock_monotonic(void);

#endif
