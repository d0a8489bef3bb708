/*
 * open_cache.h - imports that the program has closed, and that stay mapped for its next open.
 *
 * Owns the choice of what is cached (the imports themselves are the registry's), and a thread that
 * watches the records of their regions and the files of their owners in the directory. An open is
 * answered from the cache only while neither has changed: a change is in the watch's queue before
 * the call that made it returns, so an open that comes after it sees it. Only the end of a process
 * may be seen a moment late: the kernel closes its file when nobody looks into the process any
 * more.
 *
 * The slot of a cached import stays in the directory, as GPS_SLOT_CACHED. So an exporter never
 * frees beneath one: it marks its region closing, and the thread ends the mapping and clears the
 * slot; the driver's close waits for kernels of this process. While the program has the import open
 * again the slot stays as it is, which saves two writes an open; the thread corrects it when the
 * exporter asks, else once a second.
 *
 * What cannot be watched is not cached. Any thread; no scope where not said otherwise.
 */
#pragma once

#include <stdatomic.h>

#include "registry/registry.h"

extern _Atomic bool gps_open_cache_active; /* configured, and the process does not end yet */
extern _Atomic bool gps_open_cache_used;   /* configured: what is closed may be mapped */

void gps_open_cache_start(const struct gps_options *options);

/* A first open of a published region, committed to its slot: from now on it may be cached. Inside
 * a gps_scope. */
void gps_open_cache_admit(const struct gps_import *import);
/* After an open by the driver, before it is recorded: what is cached at its address is the same
 * memory by another handle, and ends. */
void gps_open_cache_opened(const struct gps_import *import);
/* An open by the driver of what was cached: takes the cache's own open back. */
void gps_open_cache_revived(const struct gps_import *import);

/* In place of the driver's open, and of a last close, whose import is *import. False: it is the
 * driver's to do. */
bool gps_open_cache_open(const uint8_t handle[GPS_HANDLE_BYTES], unsigned flags, uint64_t *pointer);
bool gps_open_cache_close(uint64_t pointer, struct gps_import *import);
/* An import that was watched is closed for good. Inside a gps_scope. */
void gps_open_cache_forget(const struct gps_import *import);

/* The device is out of memory: ends what is cached, and waits for that two seconds at most, not for
 * kernels. True: it is worth another try. */
bool gps_open_cache_relieve(void);
/* A call of the driver's, or what stands for it, that opens a region: its code. */
typedef int gps_open_fn(void *arg);
/* Makes the call. Before it, it waits 50 ms at most for the end of cached memory whose exporter has
 * freed it or is dead. Where the code tells that cached memory may be in the way, it ends that, and
 * makes the call again: another thread that closes some is waited for two seconds at a time. */
int gps_open_cache_beside(gps_open_fn *open, void *arg, const struct gps_id *region);

/* A context is being destroyed: in between no mapping is ended. Inside a gps_scope. */
void gps_open_cache_pause(void);
void gps_open_cache_resume(void);
/* The process ends: the driver is not touched any more once this returns. Inside a gps_scope. */
void gps_open_cache_stop(void);

void gps_open_cache_reset(void); /* in a forked child */
