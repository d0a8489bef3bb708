/* open_cache.c - see open_cache.h. */
#include "open_cache.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>

#include "cache_watch.h"
#include "directory/lease.h"
#include "directory/region.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "import_slot.h"
#include "process/membership.h"
#include "process/process.h"
#include "process/references.h"
#include "region_events.h"
#include "registry/freed_history.h"
#include "stack/trace.h"
#include "threads/thread.h"
#include "util/clock.h"
#include "util/lock.h"

#define OPEN_WAIT (GPS_SECOND / 20) /* of an open, for what is stale */
#define LONG_WAIT (2 * GPS_SECOND)  /* of a call that would fail otherwise */

_Atomic bool gps_open_cache_active, gps_open_cache_used;

static struct {
    GPS_LOCK(GPS_RANK_OPEN_CACHE) lock;
    pthread_cond_t changed;   /* an import has ended, or the thread has read all changes */
    unsigned paused;          /* contexts that are being destroyed */
    bool running;             /* the watching thread */
    uint64_t waiting_since;   /* for the next end; 0: nobody waits */
    _Atomic unsigned endings; /* imports that have ended */
} state = {.changed = PTHREAD_COND_INITIALIZER};

void gps_open_cache_start(const struct gps_options *options) {
    gps_open_cache_used = options->mode == GPS_MODE_SHARE && options->open_cache > 0;
    gps_open_cache_active = gps_open_cache_used;
}

/* --- ending imports --- */

enum what { STALE_ONES, ONE_END, ALL_ENDS };

/* With the lock: whether this goes on that a call may wait for. `endings`: how many there were when
 * the call began. */
static bool goes_on(enum what what, unsigned endings) {
    if (!state.running)
        return false;
    return what == ONE_END
               ? gps_registry_any_ending() && state.endings == endings
               : (what == ALL_ENDS && gps_registry_any_ending()) || gps_registry_any_stale();
}

static void wake_waiting(bool ended) {
    gps_lock_take(&state.lock);
    state.endings += ended;
    if (ended || !goes_on(ALL_ENDS, 0))
        state.waiting_since = 0;
    pthread_cond_broadcast(&state.changed);
    gps_lock_give(&state.lock);
}

static void end(const struct gps_import *import) {
    struct gps_scope scope;
    if (gps_scope_enter(&scope, import->context) == GPS_OK)
        gps_ops->close_handle(import->pointer);
    gps_import_slot_end(import, false);
    gps_registry_ended(import->pointer);
    wake_waiting(true);
    gps_scope_end(&scope);
}

/* Ends the oldest of those that fit. One at a time: while the driver waits for a kernel, the
 * context of the next may be destroyed. */
static bool end_oldest(bool (*fits)(const struct gps_import *import, const void *arg),
                       const void *arg) {
    struct gps_import import;
    gps_lock_take(&state.lock);
    const bool found = !state.paused && gps_registry_take_cached(fits, arg, &import);
    gps_lock_give(&state.lock);
    if (found)
        end(&import);
    return found;
}

static bool is_stale(const struct gps_import *import, const void *unused) {
    (void)unused;
    return import->stale;
}

static void end_stale(void) {
    while (end_oldest(is_stale, NULL))
        ;
}

/* --- waiting for the end of imports --- */

/* True: something has ended since the caller began. */
static bool wait_for(enum what what, unsigned endings, uint64_t limit) {
    int code = 0;
    gps_lock_take(&state.lock);
    const uint64_t now = gps_clock_monotonic();
    if (!state.waiting_since)
        state.waiting_since = now;
    const uint64_t waited = now - state.waiting_since;
    const struct timespec until = gps_clock_in(waited < limit ? limit - waited : 0);
    while (goes_on(what, endings) && code == 0)
        code = gps_thread_wait(&state.changed, &state.lock.mutex, &until);
    if (!goes_on(ALL_ENDS, 0))
        state.waiting_since = 0;
    const bool ended = state.endings != endings;
    gps_lock_give(&state.lock);
    return ended;
}

/* Has ended what may be the reason of a code of the driver's. True: something has ended since the
 * caller began, so another try is worth it. */
static bool end_obstacle(int code, uint64_t context, unsigned endings) {
    struct gps_scope scope;
    const bool busy = code == GPS_ALREADY_MAPPED; /* by a close, or by older memory of its place */
    /* By memory of the same exporter in another context (H200, driver 580, 2026-11-23). */
    const bool elsewhere = code == GPS_INVALID_HANDLE;
    if (!busy && !elsewhere && code != GPS_OUT_OF_MEMORY)
        return false;
    gps_scope_begin(&scope);
    bool ended = busy && wait_for(ONE_END, endings, LONG_WAIT);
    if (!ended) {
        gps_cache_watch_expire(elsewhere ? context : 0);
        ended = wait_for(ALL_ENDS, endings, LONG_WAIT);
    }
    gps_scope_end(&scope);
    return ended;
}

bool gps_open_cache_make_room(void) {
    return gps_open_cache_active && end_obstacle(GPS_OUT_OF_MEMORY, 0, state.endings);
}

/* --- opens --- */

bool gps_open_cache_open(const struct gps_import *import, unsigned flags, uint64_t *pointer) {
    const int error = errno;
    if (flags != GPS_OPEN_FLAGS || !import->context || !gps_registry_cached().count)
        return false;
    const bool open = gps_cache_watch_uncache(import, gps_trace_kept(), pointer);
    if (open)
        gps_freed_forget(GPS_FREED_IMPORT, *pointer);
    errno = error;
    return open;
}

static void wait_for_stale(void) {
    struct gps_scope scope;
    gps_scope_begin(&scope);
    if (gps_registry_cached().count)
        gps_cache_watch_read(false);
    if (gps_registry_any_stale())
        wait_for(STALE_ONES, state.endings, OPEN_WAIT);
    gps_scope_end(&scope);
}

int gps_open_cache_ask_driver(gps_open_fn *open, void *arg, uint64_t context) {
    unsigned endings;
    int code;
    if (!gps_open_cache_active)
        return open(arg);
    wait_for_stale();
    const uint64_t until = gps_clock_monotonic() + LONG_WAIT;
    do {
        endings = state.endings;
        code = open(arg);
    } while (code != GPS_OK && end_obstacle(code, context, endings) &&
             gps_clock_monotonic() < until);
    return code;
}

/* --- the watching thread --- */

/* One pass; the program opens and closes them meanwhile. */
static void correct_slots(void) {
    for (unsigned i = 0; i < GPS_OPEN_CACHE_MAX && gps_import_slot_correct(0); i++)
        ;
}

/* False: the program has closed it, or the process ends. */
static bool watch_of(struct gps_watch *watch) {
    gps_lock_take(&state.lock);
    state.running = gps_cache_watch_copy(watch) && gps_open_cache_active;
    const bool running = state.running;
    gps_lock_give(&state.lock);
    return running;
}

static void *run(void *unused) {
    struct gps_watch watch;
    prctl(PR_SET_NAME, "gpushare-cache");
    while (watch_of(&watch)) {
        gps_watch_sleep(&watch, GPS_SECOND);
        gps_cache_watch_read(true);
        end_stale();
        wake_waiting(false);
        correct_slots();
    }
    return unused;
}

static bool is_watching(void) {
    gps_lock_take(&state.lock);
    if (!state.running)
        state.running = gps_thread_start(run, NULL);
    const bool running = state.running;
    gps_lock_give(&state.lock);
    return running;
}

/* --- what may be cached --- */

/* The region is as it was opened, and its owner lives. */
static bool is_ready(const struct gps_import *import) {
    struct gps_region_record record;
    return gps_region_read(gps_membership_store(), &import->region, &record, NULL) == 0 &&
           record.generation == import->generation && record.status.state == GPS_STATE_READY &&
           gps_owner_equal(&record.owner, &import->exporter.owner) &&
           gps_lease_probe(gps_membership_store(), &record.owner) == GPS_ALIVE;
}

static bool fits_in(const struct gps_import *import) {
    return import->size <= gps_process_config()->options.open_cache_bytes;
}

/* The files are watched before they are read: a change is seen by one or the other. */
void gps_open_cache_opened(const struct gps_import *import) {
    struct gps_scope scope;
    if (!import->generation || import->vmm || !import->context || import->slot == GPS_NO_SLOT ||
        !fits_in(import))
        return;
    gps_scope_begin(&scope);
    const int record_file = gps_cache_watch_add(import);
    if (record_file >= 0 && !(is_watching() && is_ready(import)))
        gps_registry_outdate(record_file);
    gps_scope_end(&scope);
}

/* --- closes --- */

/* As of the driver's close, without a context there is none. */
bool gps_open_cache_may_keep(void) {
    uint64_t context = 0;
    return gps_ops->context(&context) == GPS_OK && context;
}

static bool is_of_context(const struct gps_import *import, const void *context) {
    return import->context == *(const uint64_t *)context;
}

/* The oldest of a context go, whose kernels a close waits for in any case; not at once where one is
 * being destroyed. */
static void keep_limits(uint64_t context) {
    const struct gps_options *options = &gps_process_config()->options;
    struct gps_cached sum = gps_registry_cached();
    while ((sum.count > options->open_cache || sum.bytes > options->open_cache_bytes) &&
           end_oldest(is_of_context, &context))
        sum = gps_registry_cached();
}

void gps_open_cache_closed(const struct gps_import *import) {
    struct gps_scope scope;
    if (!import->slot_cached) {
        gps_scope_begin(&scope);
        gps_import_slot_correct(import->pointer);
        gps_region_event_cached(import);
        gps_scope_end(&scope);
    }
    keep_limits(import->context);
}

/* --- contexts and the process end --- */

/* What is being ended may wait for a kernel: it is given up after a while. */
void gps_open_cache_pause(void) {
    const struct timespec until = gps_clock_in(LONG_WAIT);
    int code = 0;
    gps_lock_take(&state.lock);
    state.paused++;
    while (gps_registry_any_ending() && code == 0)
        code = gps_thread_wait(&state.changed, &state.lock.mutex, &until);
    gps_lock_give(&state.lock);
}

void gps_open_cache_resume(void) {
    gps_lock_take(&state.lock);
    state.paused--;
    gps_lock_give(&state.lock);
    end_stale();
}

void gps_open_cache_stop(void) {
    gps_open_cache_active = false;
    gps_open_cache_pause();
}

void gps_open_cache_reset(void) {
    memset((void *)&state, 0, sizeof(state));
    gps_open_cache_active = gps_open_cache_used = false;
}
