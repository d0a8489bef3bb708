/*
 * open_cache.h - imports that the program has closed, and that stay mapped for its next open.
 *
 * Owns the choice of what is cached (the imports are the registry's), and a thread that watches
 * their regions' records and their owners' files. How an import passes from state to state:
 *
 *   GONE    OPEN    the driver has opened it
 *   OPEN    CACHED  the program's last close, if its files are watched and it is not stale; the
 *                   driver is not asked
 *   OPEN    GONE    any other last close
 *   CACHED  OPEN    an open in its context, while no change is unread; the driver is not asked
 *   CACHED  OPEN    another open, by the driver, which counts the cache's own open, too: that is
 *                   closed
 *   CACHED  ENDING  it is stale, or a close finds the cache full
 *   CACHED  GONE    the driver has opened another region at its address
 *   ENDING  GONE    the driver has closed it, and its slot is free
 *   any     GONE    its context is destroyed
 *
 * An import becomes stale when one of its files changes, when memory runs out, or when the driver
 * refuses an open, perhaps because of it. A change is in the watch's queue before the call that
 * made it returns, so an open that comes after it sees it. Only the end of a process may be seen a
 * moment late: the kernel closes its file when no other process looks into the ended one any more.
 *
 * The slot of a cached import stays in the directory, as GPS_SLOT_CACHED. So an exporter never
 * frees beneath one: it marks its region closing, and the thread ends the mapping and clears the
 * slot. The slot of an import that was opened from the cache still says that it is cached, which
 * saves two writes an open. The thread corrects it when the exporter asks, else once a second.
 *
 * The driver's close waits for kernels of this process, so only the thread, and closes that fill
 * the cache, make one. Other calls wait for them up to a limit, which counts from the first such
 * wait after the last end: no call waits again for an end that was waited for that long.
 *
 * An import that cannot be watched is not cached. Any thread; no scope where not said otherwise.
 */
#pragma once

#include <stdatomic.h>

#include "registry/registry.h"

extern _Atomic bool gps_open_cache_active; /* configured, and the process does not end yet */
extern _Atomic bool gps_open_cache_used;   /* configured: closed imports may be mapped */

void gps_open_cache_start(const struct gps_options *options);

/* Opens a region from the cache, in place of the driver: sets *pointer. `import` says which region,
 * in which context. False: the driver is to open it. */
bool gps_open_cache_open(const struct gps_import *import, unsigned flags, uint64_t *pointer);
/* Waits 50 ms at most for the end of stale imports and those of the same region, which would not be
 * mapped without a cache. Returns how many imports have ended so far. */
unsigned gps_open_cache_before_driver(const struct gps_import *import);
/* The driver, or what stands for it, has refused the open. Where cached memory may be the reason,
 * ends it, and waits 2 s at most. True: an import has ended since there were so many endings, so
 * another try is worth it. */
bool gps_open_cache_retry_after(int code, const struct gps_import *import, unsigned endings);
/* The program has opened a region, and its slot is written: from now on it may be cached. */
void gps_open_cache_opened(const struct gps_import *import);

/* Whether a close by this thread may leave its import cached. */
bool gps_open_cache_may_keep(void);
/* The program's close has left this import cached. */
void gps_open_cache_closed(const struct gps_import *import);
/* An import is over, and its files are not watched any more. Inside a gps_scope. */
void gps_open_cache_forget(const struct gps_import *import);

/* The device is out of memory: ends cached imports, and waits 2 s at most. True: one has ended, so
 * another try is worth it. */
bool gps_open_cache_reclaim_memory(void);

/* This thread destroys a context: in between no mapping is ended. Where a handler leaves the
 * driver's call by longjmp, the thread's next open by the driver, or end of a context, makes up for
 * the second of them. Inside a gps_scope. */
void gps_open_cache_pause(void);
void gps_open_cache_resume(void);
/* The process ends: the driver is not touched any more once this returns. Inside a gps_scope. */
void gps_open_cache_stop(void);

void gps_open_cache_reset(void); /* in a forked child */
