/*
 * reclaim.h - memory of a device that is held for nobody.
 *
 * Memory that is freed and waits for its end, closed imports in the cache, what blocks that are cut
 * anew have twice, deferred frees whose last importer has gone, and merged blocks that the keeper
 * holds for nobody (but keep = forever): all of it goes before a program hears that there is no
 * memory. Any thread may call this, without a lock; it may wait for the device.
 */
#pragma once

#include <stdbool.h>

/* An allocation found no memory. True: it is worth another try. */
bool gps_reclaim_memory(void);
