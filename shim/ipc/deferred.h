/*
 * deferred.h - the exported regions that wait: for their importers, or for the end.
 *
 * Owns a list of regions: those that the program has freed (CLOSING while its thread waits,
 * DEFERRED, RESULT, FREEING; registry.h has the states), and results that the end of a process or
 * of a context hands over (at_end). A freed region stays in the list until its memory is freed, so
 * a second free of it never reaches the driver. A background thread, the reaper, starts with the
 * first region; it frees those in the driver that no process uses any more.
 *
 * A thread pins regions before it works on them, which tells it whether other processes use them
 * now (gps_export.users), and ends the pin of each or removes it from the list. No other thread
 * changes or frees a pinned region. The list's lock is held across neither driver calls nor I/O.
 *
 * Call inside a gps_scope where not said otherwise. Any thread.
 */
#pragma once

#include "registry/registry.h"

/* The device is out of memory: frees what can be freed. For processes that only cache some of it it
 * waits 0.2 s at most, once for each region. True: another try is worth while. Needs no scope. */
bool gps_deferred_reclaim_memory(void);

/* Whether any region is in the list. Takes no lock. */
extern unsigned gps_deferred_count;
static inline bool gps_deferred_any(void) {
    return __builtin_expect(__atomic_load_n(&gps_deferred_count, __ATOMIC_RELAXED) != 0, 0);
}

/* Whether the address lies in memory that the program has freed and that is still allocated, and
 * where that memory begins. Waits while the driver frees it. Needs no scope. */
bool gps_deferred_find_listed(uint64_t address, uint64_t *base);
static inline bool gps_deferred_find(uint64_t address, uint64_t *base) {
    return gps_deferred_any() && gps_deferred_find_listed(address, base);
}

/* share-timeout: no importer came for a result. */
void gps_deferred_report_untaken(const struct gps_export *region);

/* --- for the free --- */

/* Adds a region that is CLOSING. It stays the caller's. */
void gps_deferred_add(struct gps_export *region);
/* The same, pinned: whoever destroys its context waits until the caller has unpinned it. */
void gps_deferred_add_pinned(struct gps_export *region);
/* CLOSING -> DEFERRED, or RESULT: the reaper frees it when it may. False: it is lost. */
bool gps_deferred_leave(struct gps_export *region, bool result);
/* Whether the address is that of a result which was handed over at an end: this is its free, the
 * first one. Needs no scope. */
bool gps_deferred_free_listed(uint64_t pointer);
static inline bool gps_deferred_free_left(uint64_t pointer) {
    return gps_deferred_any() && gps_deferred_free_listed(pointer);
}

/* --- for the end of a process or a context --- */

/* How long to wait for regions that other threads have pinned. */
enum gps_pin_wait {
    GPS_PIN_AT_ONCE,   /* those are left out */
    GPS_PIN_WITHIN_2S, /* then pinned regions are left out; once for the same pins */
    GPS_PIN_ALL,       /* as long as it takes, with the program's signals let in */
};

/* Claims all regions of a context (0: of any) that are `wanted` (NULL: all) and that no thread of
 * the program's frees just now. Returns them, linked by `work`. A pin that this thread has left
 * by longjmp is its own again. */
struct gps_export *gps_deferred_pin(uint64_t context, enum gps_pin_wait wait,
                                    bool (*wanted)(struct gps_export *region));
void gps_deferred_unpin(struct gps_export *region);
/* A context is destroyed: its regions that are CLOSING are lost. */
void gps_deferred_lose(uint64_t context);
/* Changes the state of a region that the caller has pinned. */
void gps_deferred_become(struct gps_export *region, enum gps_export_state state);
/* The region leaves the list, and is the caller's. */
void gps_deferred_remove(struct gps_export *region);

/* Claims regions and calls fn for each. fn removes the region and returns true, or leaves it. */
void gps_deferred_each(uint64_t context, enum gps_pin_wait wait,
                       bool (*wanted)(struct gps_export *region),
                       bool (*fn)(void *arg, struct gps_export *region), void *arg);

/* The process ends: the reaper calls the driver no more once this returns, and no free is deferred.
 */
void gps_deferred_stop(void);
bool gps_deferred_stopped(void);

void gps_deferred_reset(void); /* in a forked child */
