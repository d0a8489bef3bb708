/*
 * enter.h - whether gpushare acts on a call: the first thing in every wrapper.
 */
#pragma once

#include "process/process.h"

/* The process's first call attaches to the driver and begins. One beside _exit does not return. */
bool gps_enter_slowly(void);

/* A call was refused, perhaps since it began before such an end: then it does not return either. */
void gps_enter_refused(int code);

/* Two loads once the process has begun. */
static inline bool gps_enter(void) {
    const enum gps_phase phase = gps_process_phase();
    return __builtin_expect(phase == GPS_PHASE_ON, 1) ||
           ((phase <= GPS_PHASE_STARTING || phase == GPS_PHASE_LEAVING) && gps_enter_slowly());
}
