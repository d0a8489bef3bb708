#include "deferred.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "export.h"
#include "findings/reporter.h"
#include "importers.h"
#include "process/membership.h"
#include "region_events.h"
#include "threads/thread.h"
#include "threads/watch.h"
#include "util/clock.h"
#include "util/lock.h"
#include "util/program_signals.h"

#define CACHE_WAIT (GPS_SECOND / 5) /* for processes that cache a region */
#define PIN_WAIT   (2 * GPS_SECOND)

static struct {
    GPS_LOCK(GPS_RANK_DEFERRED) lock;
    pthread_cond_t unpinned; /* a pin has ended */
    struct gps_export *list;
    unsigned pins;              /* regions that are pinned */
    bool overdue;               /* a thread has waited PIN_WAIT for these pins */
    _Atomic uint64_t last_left; /* when a region left the list (CLOCK_MONOTONIC) */
} state = {.unpinned = PTHREAD_COND_INITIALIZER};
unsigned gps_deferred_count;

static uint64_t deferred_reap(void);
static struct gps_background reaper = {.name = "gpushare-reaper",
                                       .watched = GPS_WATCH_PROCS,
                                       .turn = deferred_reap,
                                       .left = gps_deferred_any};

/* --- the list; with its lock --- */

static void deferred_insert(struct gps_export *region) {
    region->next = state.list;
    region->link = &state.list;
    if (region->next)
        region->next->link = &region->next;
    state.list = region;
    __atomic_fetch_add(&gps_deferred_count, 1, __ATOMIC_SEQ_CST);
}

static void pin(struct gps_export *region) {
    state.pins += !region->pinner;
    region->pinner = pthread_self();
}

static void unpin(struct gps_export *region) {
    if (!region->pinner)
        return;
    region->pinner = 0;
    state.overdue &= --state.pins != 0;
    pthread_cond_broadcast(&state.unpinned);
}

static void deferred_drop(struct gps_export *region) {
    unpin(region);
    state.last_left = gps_clock_monotonic();
    __atomic_fetch_sub(&gps_deferred_count, 1, __ATOMIC_SEQ_CST);
    *region->link = region->next;
    if (region->next)
        region->next->link = region->link;
}

static bool is_pinned_by_another(const struct gps_export *region) {
    return region->pinner && !pthread_equal(region->pinner, pthread_self());
}

static struct gps_export *deferred_find(uint64_t address) {
    struct gps_export *region = state.list;
    while (region && (region->at_end || address - region->pointer >= region->record.extent))
        region = region->next;
    return region;
}

/* Another thread may be in a free that waits for a kernel. As in the driver's own wait for that
 * kernel the program's signals are handled. A handler may leave by longjmp, so no lock is held. */
static void wait_a_moment(void) {
    gps_lock_give(&state.lock);
    gps_program_signals_poll(NULL, 1000000);
    gps_lock_take(&state.lock);
}

/* --- regions come and go --- */

void gps_deferred_add(struct gps_export *region) {
    GPS_LOCKED(&state.lock);
    deferred_insert(region);
}

void gps_deferred_add_pinned(struct gps_export *region) {
    GPS_LOCKED(&state.lock);
    deferred_insert(region);
    pin(region);
}

void gps_deferred_remove(struct gps_export *region) {
    GPS_LOCKED(&state.lock);
    deferred_drop(region);
}

void gps_deferred_become(struct gps_export *region, enum gps_export_state to) {
    GPS_LOCKED(&state.lock);
    gps_export_become(region, to);
}

bool gps_deferred_leave(struct gps_export *region, bool result) {
    gps_region_event_deferred(region, result);
    if (result)
        gps_export_publish_result(region);
    gps_lock_take(&state.lock);
    const bool lost = region->lost;
    if (!lost)
        gps_export_become(region, result ? GPS_EXPORT_RESULT : GPS_EXPORT_DEFERRED);
    gps_lock_give(&state.lock);
    if (!lost)
        (void)gps_background_start(&reaper); /* should that fail, the next one tries again */
    return !lost;
}

void gps_deferred_lose(uint64_t context) {
    GPS_LOCKED(&state.lock);
    for (struct gps_export *region = state.list; region; region = region->next)
        region->lost |= region->state == GPS_EXPORT_CLOSING && region->context == context;
}

bool gps_deferred_free_listed(uint64_t pointer) {
    GPS_SCOPE();
    gps_lock_take(&state.lock);
    struct gps_export *region = state.list;
    while (region && !(region->at_end && region->pointer == pointer))
        region = region->next;
    if (region)
        region->at_end = false;
    gps_lock_give(&state.lock);
    if (region)
        (void)gps_background_start(&reaper); /* as gps_deferred_leave */
    return region != NULL;
}

/* Whether the address is another allocation's already is known when the driver's free has ended. */
bool gps_deferred_find_listed(uint64_t address, uint64_t *base) {
    GPS_SCOPE();
    GPS_LOCKED(&state.lock);
    const struct gps_export *region;
    while ((region = deferred_find(address)) && region->state == GPS_EXPORT_FREEING)
        wait_a_moment();
    if (region)
        *base = region->pointer;
    return region != NULL;
}

/* --- pins --- */

static void wait_for_pins(void) {
    const struct timespec until = gps_clock_in(PIN_WAIT);
    int code = 0;
    while (state.pins && !state.overdue && code == 0)
        code = gps_thread_wait(&state.unpinned, &state.lock.mutex, &until);
    state.overdue |= code != 0;
}

static bool any_pinned(uint64_t context) {
    const struct gps_export *region = state.list;
    while (region && (region->context != context || !is_pinned_by_another(region)))
        region = region->next;
    return region != NULL;
}

static struct gps_export *deferred_pin(uint64_t context) {
    struct gps_export *work = NULL;
    for (struct gps_export *region = state.list; region; region = region->next) {
        if (region->state == GPS_EXPORT_CLOSING || is_pinned_by_another(region) ||
            (context && region->context != context))
            continue;
        pin(region);
        region->work = work;
        work = region;
    }
    return work;
}

struct gps_export *gps_deferred_pin(uint64_t context, enum gps_pin_wait wait,
                                    bool (*wanted)(struct gps_export *region)) {
    gps_lock_take(&state.lock);
    if (wait == GPS_PIN_WITHIN_2S)
        wait_for_pins();
    while (wait == GPS_PIN_ALL && any_pinned(context))
        wait_a_moment();
    struct gps_export *region = deferred_pin(context), *next, *work = NULL;
    gps_lock_give(&state.lock);
    gps_importers_mark(region);
    for (; region; region = next) {
        next = region->work;
        if (wanted && !wanted(region)) {
            gps_deferred_unpin(region);
        } else {
            region->work = work;
            work = region;
        }
    }
    return work;
}

void gps_deferred_unpin(struct gps_export *region) {
    GPS_LOCKED(&state.lock);
    unpin(region);
}

void gps_deferred_each(uint64_t context, enum gps_pin_wait wait,
                       bool (*wanted)(struct gps_export *region),
                       bool (*fn)(void *arg, struct gps_export *region), void *arg) {
    struct gps_export *region = gps_deferred_pin(context, wait, wanted), *next;
    for (; region; region = next) {
        next = region->work;
        if (!fn(arg, region))
            gps_deferred_unpin(region);
    }
}

/* --- the reaper --- */

void gps_deferred_report_untaken(const struct gps_export *region) {
    struct gps_report report = gps_report_new(GPS_SHARE_TIMEOUT);
    gps_report_about_export(&report, region);
    report.detail = "no importer took the result within its hand-over time; it was freed";
    gps_report_send(&report);
}

/* RESULT -> DEFERRED, once an importer has taken it or the hand-over is over, and no process uses
 * it. The result is open to importers until it is closed here, so they are looked for once more. */
static void end_hand_over(struct gps_export *region) {
    if (!gps_export_publish_result(region) || gps_export_is_used(region) ||
        (gps_export_is_untaken(region) && gps_clock_now() < region->until))
        return;
    gps_export_unname(region);
    if (!gps_export_close(region))
        return;
    region->users.held = gps_importers_any(region);
    if (!region->users.held && !region->users.taken)
        gps_deferred_report_untaken(region);
    gps_deferred_become(region, GPS_EXPORT_DEFERRED);
}

/* Publishes again that it is closed, which may have failed: until then importers may come. */
static bool deferred_is_due(struct gps_export *region) {
    if (gps_background_stopped(&reaper) || region->at_end)
        return false;
    if (region->state == GPS_EXPORT_RESULT)
        end_hand_over(region);
    return region->state == GPS_EXPORT_DEFERRED && gps_export_close(region) &&
           !gps_export_is_used(region);
}

/* DEFERRED -> FREEING -> GONE. */
static bool free_due(void *unused, struct gps_export *region) {
    struct gps_scope scope;
    (void)unused;
    if (gps_background_stopped(&reaper))
        return false;
    gps_deferred_become(region, GPS_EXPORT_FREEING);
    if (gps_scope_enter(&scope, region->context) == GPS_OK)
        gps_ops->release(region->pointer);
    gps_scope_end(&scope);
    gps_deferred_remove(region); /* after the free: until then a second one must not pass */
    gps_export_end(region);
    return true;
}

/* Where a free waits for a kernel, only the regions that are due stay pinned. */
static void free_all_due(enum gps_pin_wait wait) {
    gps_deferred_each(0, wait, deferred_is_due, free_due, NULL);
}

/* When the next hand-over ends; UINT64_MAX: none is open. A pinned region is its thread's. */
static uint64_t next_end(void) {
    uint64_t end = UINT64_MAX;
    GPS_LOCKED(&state.lock);
    for (const struct gps_export *region = state.list; region; region = region->next)
        if (!region->pinner && !region->at_end && gps_export_is_untaken(region) &&
            !region->users.held && region->until < end)
            end = region->until;
    return end;
}

static uint64_t deferred_reap(void) {
    free_all_due(GPS_PIN_AT_ONCE);
    const uint64_t end = next_end(), now = gps_clock_now();
    return end > now ? end - now : 0;
}

bool gps_deferred_stopped(void) {
    return gps_background_stopped(&reaper);
}

void gps_deferred_stop(void) {
    gps_background_stop(&reaper);
    GPS_LOCKED(&state.lock);
    wait_for_pins();
}

/* --- room for an allocation --- */

/* Whether other processes only cache the region, and unmap it when they see that it is closing; or
 * a thread is finding that out. */
static bool may_go_soon(const struct gps_export *region) {
    return !region->was_waited_for && (region->pinner || region->state == GPS_EXPORT_CLOSING ||
                                       (region->users.cached && !region->users.held));
}

/* `waited`: the regions that are left had their time, and are not waited for again. */
static bool any_soon(bool waited) {
    bool any = false;
    GPS_LOCKED(&state.lock);
    for (struct gps_export *region = state.list; region; region = region->next) {
        const bool soon = may_go_soon(region);
        region->was_waited_for |= waited && soon;
        any |= soon;
    }
    return any;
}

static void free_soon(void) {
    const uint64_t until = gps_clock_monotonic() + CACHE_WAIT;
    struct gps_watch watch;
    uint64_t now;
    gps_watch_open(&watch, gps_membership_store(), GPS_WATCH_PROCS);
    for (;;) {
        free_all_due(GPS_PIN_WITHIN_2S);
        if (!any_soon(false) || (now = gps_clock_monotonic()) >= until)
            break;
        gps_watch_wait(&watch, until - now);
    }
    gps_watch_close(&watch);
    any_soon(true);
}

bool gps_deferred_reclaim_memory(void) {
    if (!gps_deferred_any()) /* the last one may have left since the driver answered */
        return gps_clock_monotonic() - state.last_left < GPS_SECOND;
    GPS_SCOPE();
    free_all_due(GPS_PIN_WITHIN_2S); /* after the reaper */
    if (any_soon(false))
        free_soon();
    return true; /* memory may have come free meanwhile, as above */
}

void gps_deferred_reset(void) {
    gps_background_reset(&reaper);
    memset((void *)&state, 0, sizeof(state)); /* as the initialisers are */
    gps_deferred_count = 0;
}
