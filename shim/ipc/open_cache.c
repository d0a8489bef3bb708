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
#include "findings/reporter.h"
#include "process/membership.h"
#include "process/process.h"
#include "process/references.h"
#include "region_events.h"
#include "registry/freed_history.h"
#include "stack/trace.h"
#include "threads/thread.h"
#include "util/clock.h"
#include "util/lock.h"

#define A_MOMENT (GPS_SECOND / 20)
#define PATIENCE (2 * GPS_SECOND)

enum { TRIES = 64 };

_Atomic bool gps_open_cache_active, gps_open_cache_used;

static struct {
    GPS_LOCK(GPS_RANK_OPEN_CACHE) lock;
    pthread_cond_t ended; /* a thread has ended some mappings */
    unsigned ending, paused, endings;
    bool running, turning;                   /* the watching thread */
    bool settled_in_vain, dismissed_in_vain; /* not again until something has ended */
} state = {.ended = PTHREAD_COND_INITIALIZER};

void gps_open_cache_start(const struct gps_options *options) {
    gps_open_cache_used = options->mode == GPS_MODE_SHARE && options->open_cache > 0;
    gps_open_cache_active = gps_open_cache_used;
}

static void tell(uint64_t pointer) {
    gps_report_reference(gps_references_rewrite(gps_registry_tell, pointer));
}

/* --- ending mappings --- */

static bool begin_ending(void) {
    gps_lock_take(&state.lock);
    const bool may = !state.paused;
    state.ending += may;
    gps_lock_give(&state.lock);
    return may;
}

static void finish_ending(bool ended) {
    gps_lock_take(&state.lock);
    state.ending--;
    state.endings += ended;
    if (ended)
        state.settled_in_vain = state.dismissed_in_vain = false;
    pthread_cond_broadcast(&state.ended);
    gps_lock_give(&state.lock);
}

/* Waits for the other threads that are ending mappings, or for the first of them. They may wait
 * for a kernel: two seconds at most. False: there are none, or they are not done. */
static bool wait_ended(bool all) {
    const struct timespec until = gps_clock_in(PATIENCE);
    int code = 0;
    gps_lock_take(&state.lock);
    const unsigned seen = state.endings;
    const bool busy = state.ending > 0;
    while (state.ending && (all || state.endings == seen) && code == 0)
        code = gps_thread_wait(&state.ended, &state.lock.mutex, &until);
    gps_lock_give(&state.lock);
    return busy && code == 0;
}

void gps_open_cache_forget(const struct gps_import *import) {
    if (import->record_file)
        gps_cache_watch_remove(import->record_file);
}

/* The slot goes last: until then the exporter waits. */
static void end(const struct gps_import *import) {
    struct gps_scope scope;
    if (gps_scope_enter(&scope, import->context) == GPS_OK)
        gps_ops->close_handle(import->pointer);
    gps_registry_ended(import->pointer);
    gps_region_event_closed(import, false);
    gps_open_cache_forget(import);
    gps_report_reference(gps_references_end(import->slot));
    gps_scope_end(&scope);
}

static bool is_stale(const struct gps_import *import, const void *unused) {
    (void)unused;
    return import->stale;
}

static bool is_of(const struct gps_import *import, const void *region) {
    return !region || gps_id_equal(&import->region, region);
}

/* Ends the oldest of those that fit. Each for itself: while one waits for a kernel, the context of
 * the next may be destroyed. */
static bool end_oldest(bool (*fits)(const struct gps_import *import, const void *arg),
                       const void *arg) {
    struct gps_import import;
    if (!begin_ending())
        return false;
    const bool found = gps_registry_take_cached(fits, arg, &import);
    if (found)
        end(&import);
    finish_ending(found);
    return found;
}

static bool end_cached(bool (*fits)(const struct gps_import *import, const void *arg),
                       const void *arg) {
    bool ended = false;
    while (end_oldest(fits, arg))
        ended = true;
    return ended;
}

/* With the lock. The slot goes last, so the registry alone does not tell. */
static bool is_ending(void) {
    return state.ending || gps_registry_any_stale();
}

/* Has the watching thread end what is cached: it may wait for a kernel, which this does not for
 * long. True: something has ended. */
static bool dismiss(void) {
    const struct timespec until = gps_clock_in(PATIENCE);
    int code = 0;
    gps_lock_take(&state.lock);
    const unsigned seen = state.endings;
    gps_cache_watch_outdate();
    while (state.running && !state.dismissed_in_vain && is_ending() && code == 0)
        code = gps_thread_wait(&state.ended, &state.lock.mutex, &until);
    state.dismissed_in_vain |= code != 0;
    const bool ended = state.endings != seen;
    gps_lock_give(&state.lock);
    return ended;
}

bool gps_open_cache_relieve(void) {
    struct gps_scope scope;
    if (!gps_open_cache_active)
        return false;
    gps_scope_begin(&scope);
    const bool relieved = dismiss();
    gps_scope_end(&scope);
    return relieved;
}

/* --- opens by the driver --- */

/* With the lock: the watching thread has changes to read, or ends what is stale by them. */
static bool is_settling(void) {
    return state.turning || !gps_cache_watch_quiet();
}

/* Bare, what is stale is not there. An end of it may wait for a kernel, which this does not. */
static void settle(void) {
    const struct timespec until = gps_clock_in(A_MOMENT);
    struct gps_scope scope;
    int code = 0;
    gps_scope_begin(&scope);
    gps_lock_take(&state.lock);
    while (state.running && !state.settled_in_vain && is_settling() && code == 0)
        code = gps_thread_wait(&state.ended, &state.lock.mutex, &until);
    state.settled_in_vain |= code != 0;
    gps_lock_give(&state.lock);
    gps_scope_end(&scope);
}

/* region NULL: everything. */
static bool relieve(const struct gps_id *region) {
    const bool ended = end_cached(is_of, region);
    const bool waited = wait_ended(true);
    return ended || waited;
}

/* What of the cache may be in the way of an open that the driver has refused with this code. */
static bool end_obstacles(int code, const struct gps_id *region) {
    switch (code) {
    case GPS_ALREADY_MAPPED: /* beside a close, or beside older memory of the same place */
        return wait_ended(false) || relieve(NULL);
    case GPS_OUT_OF_MEMORY:
        return dismiss();
    case GPS_INVALID_HANDLE: /* it is open in another context */
        return relieve(region);
    default:
        return false;
    }
}

/* True: it is worth another try. */
static bool make_way(int code, const struct gps_id *region) {
    struct gps_scope scope;
    gps_scope_begin(&scope);
    const bool made = end_obstacles(code, region);
    gps_scope_end(&scope);
    return made;
}

int gps_open_cache_beside(gps_open_fn *open, void *arg, const struct gps_id *region) {
    if (!gps_open_cache_active)
        return open(arg);
    settle();
    int code = open(arg);
    for (int i = 0; i < TRIES && code != GPS_OK && make_way(code, region); i++)
        code = open(arg);
    return code;
}

/* --- the watching thread --- */

/* One pass; the program opens and closes them meanwhile. */
static void tell_what_is_open(void) {
    uint64_t pointer;
    for (unsigned i = 0; i < GPS_OPEN_CACHE_MAX && gps_registry_untold(&pointer); i++)
        tell(pointer);
}

/* False: it was closed by the program, or the process ends. */
static bool watch_of(struct gps_watch *watch) {
    gps_lock_take(&state.lock);
    state.running = gps_cache_watch_copy(watch) && gps_open_cache_active;
    const bool goes_on = state.running;
    gps_lock_give(&state.lock);
    return goes_on;
}

static void set_turning(bool turning) {
    gps_lock_take(&state.lock);
    state.turning = turning;
    pthread_cond_broadcast(&state.ended);
    gps_lock_give(&state.lock);
}

static void *run(void *unused) {
    struct gps_watch watch;
    prctl(PR_SET_NAME, "gpushare-cache");
    while (watch_of(&watch)) {
        gps_watch_sleep(&watch, GPS_SECOND);
        set_turning(true);
        gps_cache_watch_note();
        end_cached(is_stale, NULL);
        set_turning(false);
        tell_what_is_open();
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

/* The region as it was opened, and its owner alive. */
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
void gps_open_cache_admit(const struct gps_import *import) {
    if (!gps_open_cache_active || !import->generation || import->vmm || !import->context ||
        import->slot == GPS_NO_SLOT || !fits_in(import))
        return;
    const int record_file = gps_cache_watch_add(import);
    if (record_file >= 0 && !(is_watching() && is_ready(import)))
        gps_registry_outdate(record_file);
}

static bool is_other_at(const struct gps_import *import, const void *opened) {
    const struct gps_import *other = opened;
    return import->pointer == other->pointer && import->context == other->context &&
           !gps_id_equal(&import->region, &other->region);
}

void gps_open_cache_opened(const struct gps_import *import) {
    struct gps_scope scope;
    if (!gps_registry_cached().count)
        return;
    gps_scope_begin(&scope);
    end_oldest(is_other_at, import);
    gps_scope_end(&scope);
}

void gps_open_cache_revived(const struct gps_import *import) {
    struct gps_scope scope;
    gps_scope_enter(&scope, 0);
    gps_ops->close_handle(import->pointer);
    tell(import->pointer);
    gps_scope_end(&scope);
}

/* --- opens and closes --- */

/* As the driver's close, without a context it is none. */
static bool has_context(uint64_t *context) {
    return gps_ops->context(context) == GPS_OK && *context;
}

bool gps_open_cache_open(const uint8_t handle[GPS_HANDLE_BYTES], unsigned flags,
                         uint64_t *pointer) {
    uint64_t context = 0;
    const int error = errno;
    if (flags != GPS_OPEN_FLAGS || !gps_registry_cached().count || !has_context(&context))
        return false;
    const struct gps_id region = gps_id_of_handle(handle);
    const uint32_t trace = gps_trace_kept();
    const bool open = gps_cache_watch_uncache(&region, context, trace, pointer);
    if (open)
        gps_freed_forget(GPS_FREED_IMPORT, *pointer);
    errno = error;
    return open;
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

bool gps_open_cache_close(uint64_t pointer, struct gps_import *import) {
    uint64_t context = 0;
    struct gps_scope scope;
    if (!has_context(&context) || !gps_registry_cache(pointer, import))
        return false;
    if (import->told != GPS_SLOT_CACHED) {
        gps_scope_begin(&scope);
        tell(pointer);
        gps_region_event_cached(import);
        gps_scope_end(&scope);
    }
    keep_limits(import->context);
    return true;
}

/* --- contexts and the process end --- */

void gps_open_cache_pause(void) {
    gps_lock_take(&state.lock);
    state.paused++;
    gps_lock_give(&state.lock);
    wait_ended(true);
}

void gps_open_cache_resume(void) {
    gps_lock_take(&state.lock);
    state.paused--;
    gps_lock_give(&state.lock);
    end_cached(is_stale, NULL);
}

void gps_open_cache_stop(void) {
    gps_open_cache_active = false;
    gps_open_cache_pause();
}

void gps_open_cache_reset(void) {
    memset((void *)&state, 0, sizeof(state));
    gps_open_cache_active = gps_open_cache_used = false;
}
