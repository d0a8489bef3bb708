/* deferred.c - see deferred.h. */
#include "deferred.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "export.h"
#include "findings/reporter.h"
#include "importers.h"
#include "process/membership.h"
#include "threads/background.h"
#include "threads/thread.h"
#include "threads/watch.h"
#include "util/clock.h"
#include "util/lock.h"
#include "util/program_signals.h"

/* So long an allocation that is out of memory waits once for what other processes only cache. */
#define LET_GO (GPS_SECOND / 5)

static struct {
    GPS_LOCK(GPS_RANK_DEFERRED) lock;
    pthread_cond_t idle;  /* no pass is under way */
    pthread_cond_t freed; /* a region is freed, and out of the list */
    struct gps_export *list;
    unsigned passes;        /* under way */
    bool in_vain;           /* a patient one has waited for these */
    _Atomic unsigned count; /* of the list, to be read without the lock */
    _Atomic uint64_t last;  /* when one left it (CLOCK_MONOTONIC) */
} state = {.idle = PTHREAD_COND_INITIALIZER, .freed = PTHREAD_COND_INITIALIZER};

static bool any_left(void);
static uint64_t reap(void);
static struct gps_background reaper = {
    .name = "gpushare-reaper", .watched = GPS_WATCH_PROCS, .turn = reap, .left = any_left};

/* --- the regions that wait --- */

void gps_deferred_add(struct gps_export *region, bool busy) {
    gps_lock_take(&state.lock);
    region->busy = busy;
    region->next = state.list;
    region->link = &state.list;
    if (region->next)
        region->next->link = &region->next;
    state.list = region;
    state.count++;
    gps_lock_give(&state.lock);
}

void gps_deferred_remove(struct gps_export *region) {
    gps_lock_take(&state.lock);
    region->busy = region->freeing = false;
    state.last = gps_clock_monotonic();
    state.count--;
    pthread_cond_broadcast(&state.freed);
    *region->link = region->next;
    if (region->next)
        region->next->link = region->link;
    gps_lock_give(&state.lock);
}

/* The region that an address lies in. */
static struct gps_export *find(uint64_t address) {
    struct gps_export *region = state.list;
    while (region && address - region->pointer >= region->record.extent)
        region = region->next;
    return region;
}

/* Only the end of the driver's free tells whether its address is another's already. */
__attribute__((noinline)) static enum gps_deferral find_waiting(uint64_t address, uint64_t *base) {
    struct gps_scope scope;
    gps_scope_begin(&scope);
    gps_lock_take(&state.lock);
    const struct gps_export *region;
    while ((region = find(address)) && region->freeing)
        pthread_cond_wait(&state.freed, &state.lock.mutex);
    enum gps_deferral found = GPS_NOT_DEFERRED;
    if (region) {
        *base = region->pointer;
        found = region->leaving ? GPS_LEAVING : GPS_DEFERRED;
    }
    gps_lock_give(&state.lock);
    gps_scope_end(&scope);
    return found;
}

enum gps_deferral gps_deferred_find(uint64_t address, uint64_t *base) {
    return atomic_load_explicit(&state.count, memory_order_relaxed) ? find_waiting(address, base)
                                                                    : GPS_NOT_DEFERRED;
}

void gps_deferred_freed(uint64_t pointer) {
    gps_lock_take(&state.lock);
    struct gps_export *region = find(pointer);
    if (region)
        region->reported = true; /* there is no leak to report */
    gps_lock_give(&state.lock);
}

static bool any_left(void) {
    return atomic_load(&state.count);
}

/* When the next hand-over ends; UINT64_MAX: none is open. What others are busy with is theirs. */
static uint64_t next_end(void) {
    uint64_t end = UINT64_MAX;
    gps_lock_take(&state.lock);
    for (const struct gps_export *region = state.list; region; region = region->next)
        if (!region->busy && region->final && !region->claimed && !region->held &&
            region->until < end)
            end = region->until;
    gps_lock_give(&state.lock);
    return end;
}

/* --- passes --- */

static void wait_idle(void) {
    const struct timespec until = gps_clock_in(2 * GPS_SECOND);
    int code = 0;
    while (state.passes && !state.in_vain && code == 0)
        code = gps_thread_wait(&state.idle, &state.lock.mutex, &until);
    state.in_vain |= code != 0;
}

/* As in the driver's wait for the same kernel, the program's signals are handled. A handler may
 * leave by longjmp, so no lock is held. */
static void wait_idle_to_the_end(void) {
    const struct timespec moment = {.tv_nsec = 1000000};
    while (state.passes) {
        gps_lock_give(&state.lock);
        (void)ppoll(NULL, 0, &moment, gps_signals_to_wait_with());
        gps_lock_take(&state.lock);
    }
}

struct gps_export *gps_deferred_take(uint64_t context, enum gps_patience patience) {
    struct gps_export *work = NULL;
    gps_lock_take(&state.lock);
    if (patience == GPS_PATIENT)
        wait_idle();
    else if (patience == GPS_VERY_PATIENT)
        wait_idle_to_the_end();
    state.passes++;
    for (struct gps_export *region = state.list; region; region = region->next) {
        if (region->busy || (context && region->context != context))
            continue;
        region->busy = true;
        region->work = work;
        work = region;
    }
    gps_lock_give(&state.lock);
    gps_importers_mark(work);
    return work;
}

void gps_deferred_put_back(struct gps_export *region) {
    gps_lock_take(&state.lock);
    region->busy = false;
    gps_lock_give(&state.lock);
}

void gps_deferred_leave(struct gps_export *region) {
    gps_deferred_put_back(region);
    (void)gps_background_start(&reaper); /* should that fail, the next one tries again */
}

void gps_deferred_done(void) {
    gps_lock_take(&state.lock);
    if (--state.passes == 0) {
        state.in_vain = false;
        pthread_cond_broadcast(&state.idle);
    }
    gps_lock_give(&state.lock);
}

void gps_deferred_each(uint64_t context, enum gps_patience patience,
                       bool (*fn)(void *arg, struct gps_export *region), void *arg) {
    struct gps_export *region = gps_deferred_take(context, patience), *next;
    for (; region; region = next) {
        next = region->work;
        if (!fn || !fn(arg, region))
            gps_deferred_put_back(region);
    }
    gps_deferred_done();
}

/* --- the reaper: frees what is due --- */

void gps_deferred_report_unclaimed(const struct gps_export *region) {
    struct gps_report report = gps_report_new(GPS_SHARE_TIMEOUT);
    gps_report_about_export(&report, region);
    report.detail = "no importer took the result within its hand-over time; it was freed";
    gps_report_send(&report);
}

/* Whether the memory can go now. A result waits to be claimed, then to be let go of. */
static bool is_due(const struct gps_export *region) {
    if (region->leaving || region->held || region->cached)
        return false;
    if (!region->final || region->claimed)
        return true;
    return gps_clock_now() >= region->until;
}

/* A result is open to importers until now: close it, then look once more. */
static bool close_result(struct gps_export *region) {
    gps_export_unname(region);
    if (!gps_export_close(region))
        return false;
    region->held = gps_importers_any(region);
    if (!region->held && !region->claimed)
        gps_deferred_report_unclaimed(region);
    region->final = false; /* from here on it waits like any other freed region */
    return !region->held;
}

/* Whether the region's state is published: that may have failed before, and while it fails
 * importers may still come. */
static bool is_published(struct gps_export *region) {
    return region->leaving ||
           (region->final ? gps_export_make_final(region) : gps_export_close(region));
}

static void release(struct gps_export *region) {
    struct gps_scope scope;
    gps_lock_take(&state.lock);
    region->freeing = true;
    gps_lock_give(&state.lock);
    if (gps_scope_enter(&scope, region->context) == GPS_OK)
        gps_ops->release(region->pointer);
    gps_scope_end(&scope);
}

static bool free_if_due(void *unused, struct gps_export *region) {
    (void)unused;
    if (gps_background_stopped(&reaper) || !is_published(region) || !is_due(region) ||
        (region->final && !close_result(region)))
        return false;
    release(region);
    gps_deferred_remove(region); /* after the free: until then a second one must not pass */
    gps_importers_freed(region);
    gps_export_end(region);
    return true;
}

static uint64_t reap(void) {
    gps_deferred_each(0, GPS_HASTY, free_if_due, NULL);
    const uint64_t end = next_end(), now = gps_clock_now();
    return end > now ? end - now : 0;
}

/* Other processes only cache it, and let go when they see that it is closing; or another thread is
 * finding that out. */
static bool may_go_soon(const struct gps_export *region) {
    return !region->waited && (region->busy || (region->cached && !region->held));
}

/* `waited`: those that are left had time for it, and are not waited for again. */
static bool any_soon(bool waited) {
    bool any = false;
    gps_lock_take(&state.lock);
    for (struct gps_export *region = state.list; region; region = region->next) {
        const bool soon = may_go_soon(region);
        region->waited |= waited && soon;
        any |= soon;
    }
    gps_lock_give(&state.lock);
    return any;
}

/* Frees what becomes due in a moment. */
static void free_soon(void) {
    const uint64_t until = gps_clock_monotonic() + LET_GO;
    struct gps_watch watch;
    uint64_t now;
    gps_watch_open(&watch, gps_membership_store(), GPS_WATCH_PROCS);
    for (;;) {
        gps_deferred_each(0, GPS_PATIENT, free_if_due, NULL);
        if (!any_soon(false) || (now = gps_clock_monotonic()) >= until)
            break;
        gps_watch_wait(&watch, until - now);
    }
    gps_watch_close(&watch);
    any_soon(true);
}

bool gps_deferred_relieve(void) {
    struct gps_scope scope;
    if (!any_left()) /* the last may have gone since the driver answered */
        return gps_clock_monotonic() - state.last < GPS_SECOND;
    gps_scope_begin(&scope);
    gps_deferred_each(0, GPS_PATIENT, free_if_due, NULL); /* after the reaper's pass */
    if (any_soon(false))
        free_soon();
    gps_scope_end(&scope);
    return true; /* in any case, as above */
}

void gps_deferred_stop(void) {
    gps_background_stop(&reaper);
    gps_deferred_each(0, GPS_PATIENT, NULL, NULL); /* after the pass under way */
}

void gps_deferred_reset(void) {
    gps_background_reset(&reaper);
    memset((void *)&state, 0, sizeof(state)); /* as the initialisers are */
}
