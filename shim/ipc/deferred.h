/*
 * deferred.h - regions whose memory is freed after their last importer has closed them.
 *
 * Owns the regions that wait for that: freed by the program while other processes hold them, final
 * results (ready = free) on their way to a first importer, and what a process or context leaves
 * behind. A waiting region stays in the list until its memory is freed, so a second free of it
 * never reaches the driver. A background thread, the reaper, starts with the first one and frees in
 * the driver what is no longer held.
 *
 * A thread works on waiting regions in passes: it takes them, which makes them its own ("busy"),
 * with `held` and `claimed` as the directory says now; it puts each one back or removes it; and it
 * ends the pass. The list's lock is held across neither driver calls nor I/O.
 *
 * Call inside a gps_scope where not said otherwise. Any thread.
 */
#pragma once

#include "registry/registry.h"

/* Whether an address lies in memory that waits here, and where that begins. Waits while the driver
 * frees it. Needs no scope. */
enum gps_deferral {
    GPS_NOT_DEFERRED,
    GPS_DEFERRED, /* the program has freed it, and it is still allocated */
    GPS_LEAVING,  /* the program has not: it goes with the process or the context */
};
enum gps_deferral gps_deferred_find(uint64_t address, uint64_t *base);
/* The device is out of memory: frees what can be freed, and waits 0.2 s at most, once for a region,
 * for processes that only cache some. True when it is worth another try. Needs no scope. */
bool gps_deferred_relieve(void);
/* The program has freed what it leaves behind after all, when the driver no longer could. */
void gps_deferred_freed(uint64_t pointer);

/* share-timeout: no importer came for a result. */
void gps_deferred_report_unclaimed(const struct gps_export *region);

/* --- for close_before_free and teardown --- */

/* Busy: the caller's own until it puts it back, or leaves it to the reaper. */
void gps_deferred_add(struct gps_export *region, bool busy);

/* How long to wait for passes under way, which may be in a free that waits for a kernel. */
enum gps_patience {
    GPS_HASTY,        /* not at all: what others are busy with is left to them */
    GPS_PATIENT,      /* two seconds, once for the same passes */
    GPS_VERY_PATIENT, /* to their end: the driver is about to do the same */
};

/* Begins a pass: all regions of a context (0: of any) that no thread is busy with, linked by
 * `work`. */
struct gps_export *gps_deferred_take(uint64_t context, enum gps_patience patience);
void gps_deferred_put_back(struct gps_export *region);
void gps_deferred_leave(struct gps_export *region);
void gps_deferred_remove(struct gps_export *region); /* the caller's from now on */
void gps_deferred_done(void);                        /* ends the pass */

/* A whole pass: fn (which may be NULL) removes a region and returns true, or leaves it. */
void gps_deferred_each(uint64_t context, enum gps_patience patience,
                       bool (*fn)(void *arg, struct gps_export *region), void *arg);

/* The process ends: the reaper touches the driver no more once this returns. */
void gps_deferred_stop(void);

void gps_deferred_reset(void); /* in a forked child */
