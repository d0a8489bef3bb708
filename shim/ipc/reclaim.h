/*
 * reclaim.h - memory of a device that no process needs.
 *
 * Memory that is freed and waits for its end, closed imports in the cache, the second memory of
 * blocks that are cut anew, deferred frees whose last importer has ended, and merged blocks that
 * only the keeper holds (but keep = forever): all of it is freed before a program hears that there
 * is no memory. Any thread may call this, without a lock; it may wait for the device.
 */
#pragma once

#include <stdbool.h>

#include "driver/driver_ops.h"

/* An allocation found no memory. True: it is worth another try. */
bool gps_reclaim_memory(void);

/* The code of a call that allocates, made again if it found no memory and some came back. */
#define GPS_WITH_RECLAIM(call) GPS_WITH_RECLAIM_IF(true, call)
#define GPS_WITH_RECLAIM_IF(condition, call)                                                       \
    ({                                                                                             \
        int reclaim_code_ = (call);                                                                \
        if (reclaim_code_ == GPS_OUT_OF_MEMORY && (condition) && gps_reclaim_memory())             \
            reclaim_code_ = (call);                                                                \
        reclaim_code_;                                                                             \
    })
