/*
 * deferred.h - the exported regions that wait: for their importers, or for the end.
 *
 * Owns a list of regions. In it are those that the program has freed (CLOSING while its thread
 * waits, DEFERRED, RESULT, FREEING) and those that a process or a context leaves behind (LEAVING,
 * LEFT_RESULT, ABANDONED); registry.h has the states. A freed region stays in the list until its
 * memory is freed, so a second free of it never reaches the driver. A background thread, the
 * reaper, starts with the first one; it frees in the driver what no process uses any more.
 *
 * A thread claims regions before it works on them, which tells it who uses them now
 * (gps_export.users), and ends the claim of each or removes it from the list. Nobody else changes
 * or frees a claimed region. The list's lock is held across neither driver calls nor I/O.
 *
 * Call inside a gps_scope where not said otherwise. Any thread.
 */
#pragma once

#include "registry/registry.h"

/* Whether the address lies in memory that the program has freed and that is still allocated, and
 * where that memory begins. Waits while the driver frees it. Needs no scope. */
bool gps_deferred_find(uint64_t address, uint64_t *base);

/* The device is out of memory: frees what can be freed. For processes that only cache some of it it
 * waits 0.2 s at most, once for each region. True: another try is worth while. Needs no scope. */
bool gps_deferred_make_room(void);

/* Whether any region is in the list. Takes no lock. */
extern unsigned gps_deferred_count;
static inline bool gps_deferred_any(void) {
    return __builtin_expect(__atomic_load_n(&gps_deferred_count, __ATOMIC_RELAXED) != 0, 0);
}

/* share-timeout: no importer came for a result. */
void gps_deferred_report_untaken(const struct gps_export *region);

/* --- for the free --- */

/* Adds a region that is CLOSING. It stays the caller's. */
void gps_deferred_add(struct gps_export *region);
/* CLOSING -> DEFERRED, or RESULT: the reaper frees it when it may. */
void gps_deferred_leave(struct gps_export *region, bool result);
/* The caller has taken a region's allocation from the registry, to free it; or, if its memory is
 * gone already, to end the region. Needs no scope. */
enum gps_reclaim {
    GPS_RECLAIMED,   /* it is LIVE, or is so again: the free can begin */
    GPS_HANDED_OVER, /* LEFT_RESULT -> RESULT: that was its free; never if its memory is gone */
    GPS_CLAIMED,     /* another thread has claimed it for two seconds: it goes with its context, or
                        gps_deferred_pay frees it */
};
enum gps_reclaim gps_deferred_reclaim(struct gps_export *region, bool gone);

/* --- for the end of a process or a context --- */

/* LIVE -> LEAVING: all regions of a context (0: of any). The registry keeps their allocations. */
void gps_deferred_bring(uint64_t context);

/* How long to wait for regions that other threads have claimed. */
enum gps_claim_wait {
    GPS_CLAIM_AT_ONCE,   /* those are left out */
    GPS_CLAIM_WITHIN_2S, /* then those are left out; once for the same claims */
    GPS_CLAIM_ALL,       /* as long as it takes, with the program's signals let in */
};

/* Claims all regions of a context (0: of any) that are `wanted` (NULL: all) and that no thread of
 * the program's frees just now. Returns them, linked by `work`. A claim that this thread has left
 * by longjmp is its own again. */
struct gps_export *gps_deferred_claim(uint64_t context, enum gps_claim_wait wait,
                                      bool (*wanted)(struct gps_export *region));
void gps_deferred_unclaim(struct gps_export *region);
/* Ends the claim of a region whose context stays. If the program has freed it meanwhile, the caller
 * has taken its allocation from the registry: LEFT_RESULT -> RESULT, else -> DEFERRED. */
void gps_deferred_pay(struct gps_export *region);
/* Changes the state of a region that the caller has claimed. */
void gps_deferred_become(struct gps_export *region, enum gps_export_state state);
/* The region leaves the list, and is the caller's. */
void gps_deferred_remove(struct gps_export *region);

/* Claims regions and calls fn for each. fn removes the region and returns true, or leaves it. */
void gps_deferred_each(uint64_t context, enum gps_claim_wait wait,
                       bool (*wanted)(struct gps_export *region),
                       bool (*fn)(void *arg, struct gps_export *region), void *arg);

/* The process ends: the reaper calls the driver no more once this returns, and no free is deferred.
 */
void gps_deferred_stop(void);
bool gps_deferred_stopped(void);

void gps_deferred_reset(void); /* in a forked child */
