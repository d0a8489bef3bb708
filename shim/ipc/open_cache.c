#include "open_cache.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>

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
#include "threads/watch.h"
#include "util/clock.h"
#include "util/lock.h"

#define OPEN_WAIT (GPS_SECOND / 20) /* of an open, for stale imports */
#define LONG_WAIT (2 * GPS_SECOND)  /* of a call that would fail otherwise */

enum {
    RECORD_EVENTS = IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF,
    OWNER_EVENTS =
        IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF, /* the owner's file was closed: it has ended */
};

_Atomic bool gps_open_cache_active, gps_open_cache_used;

static struct {
    GPS_LOCK(GPS_RANK_OPEN_CACHE) lock;
    pthread_cond_t changed;   /* an import ends or has ended, or the thread has made a pass */
    unsigned paused;          /* contexts that are being destroyed */
    unsigned busy;            /* imports that the driver closes just now */
    bool running;             /* the watching thread */
    uint64_t waiting_since;   /* for the next end; 0: no call waits */
    _Atomic unsigned endings; /* imports that have ended */
    struct gps_watch watch;   /* opens look at it without the lock */
    _Atomic bool watching;    /* the watch is open, and the program has not closed it */
    _Atomic bool reading;     /* changes are read from it that the registry does not have yet */
} state = {.changed = PTHREAD_COND_INITIALIZER};

static __thread bool has_paused; /* this thread destroys a context */

void gps_open_cache_start(const struct gps_options *options) {
    gps_open_cache_used = options->mode == GPS_MODE_SHARE && options->open_cache > 0;
    gps_open_cache_active = gps_open_cache_used;
}

/* --- the watch --- */

static void open_cache_wake(void) {
    GPS_LOCKED(&state.lock);
    if (state.watching)
        gps_watch_wake(&state.watch, gps_membership_store()->path);
}

static void read_changes(void) {
    GPS_LOCKED(&state.lock);
    struct gps_watch watch = state.watch;
    atomic_store(&state.reading, true);
    if (state.watching)
        gps_watch_changed(&watch, gps_registry_outdate);
    if (watch.fd < 0)
        atomic_store(&state.watching, false);
    atomic_store(&state.reading, false);
}

/* A change that another thread is reading shows in the watch's queue or in `reading`: that is set
 * before the queue is read. */
static bool is_unchanged(void) {
    return atomic_load(&state.watching) && gps_watch_quiet(&state.watch) &&
           !atomic_load(&state.reading);
}

static void *open_cache_run(void *unused);

/* With the lock. */
static bool is_watching(void) {
    if (!state.watching) {
        gps_watch_open(&state.watch, gps_membership_store(), 0);
        atomic_store(&state.watching, state.watch.fd >= 0);
    }
    if (!state.running)
        state.running = gps_thread_start(open_cache_run, NULL);
    return state.running && state.watching;
}

/* Watches the files of an import: the number of its record's, or less than 0. */
static int watch_files(const struct gps_import *import) {
    const struct gps_store *store = gps_membership_store();
    char record[GPS_FILE_PATH], owner[GPS_FILE_PATH];
    int owner_file = -1, record_file = -1;
    gps_region_path(store, &import->region, "", record);
    gps_file_path_of_owner(store, &import->exporter.owner, "", owner);
    GPS_LOCKED(&state.lock);
    if (is_watching())
        owner_file = gps_watch_file(&state.watch, owner, OWNER_EVENTS);
    if (owner_file >= 0)
        record_file = gps_watch_file(&state.watch, record, RECORD_EVENTS);
    if (record_file >= 0 && !gps_registry_watch(import, record_file, owner_file)) {
        gps_watch_unfile(&state.watch, record_file);
        record_file = -1;
    }
    return record_file;
}

void gps_open_cache_forget(const struct gps_import *import) {
    if (!import->cache.record_file)
        return;
    GPS_LOCKED(&state.lock);
    if (state.watching)
        gps_watch_unfile(&state.watch, import->cache.record_file);
}

/* --- ending imports --- */

static void cached_import_end(const struct gps_import *import) {
    struct gps_scope scope;
    if (gps_scope_enter(&scope, import->context) == GPS_OK)
        gps_ops->close_handle(import->pointer);
    gps_open_cache_forget(import);
    gps_import_slot_end(import, false);
    gps_registry_ended(import->pointer);
    gps_lock_take(&state.lock);
    state.busy--;
    state.endings++;
    state.waiting_since = 0;
    pthread_cond_broadcast(&state.changed);
    gps_lock_give(&state.lock);
    gps_scope_end(&scope);
}

/* Ends the oldest import that is ENDING, or that is cached in a context. One at a time: while the
 * driver waits for a kernel, the context of the next may be destroyed. */
static bool end_oldest(uint64_t context) {
    struct gps_import import;
    gps_lock_take(&state.lock);
    const bool found = !state.paused && gps_registry_take_ending(context, &import);
    if (found) {
        state.busy++;
        pthread_cond_broadcast(&state.changed);
    }
    gps_lock_give(&state.lock);
    if (found)
        cached_import_end(&import);
    return found;
}

/* --- waiting for the end of imports --- */

/* Waits until the thread ends an import: on a busy machine it gets no processor at once. */
static void wait_for_thread(const struct gps_id *region) {
    const struct timespec until = gps_clock_in(LONG_WAIT);
    int code = 0;
    GPS_LOCKED(&state.lock);
    while (state.running && !state.paused && !state.busy && gps_registry_any_ending(region) &&
           code == 0)
        code = gps_thread_wait(&state.changed, &state.lock.mutex, &until);
}

/* Waits until no import is stale, nor this region's ENDING. True: one ended since `endings`. */
static bool wait_for_end(const struct gps_id *region, unsigned endings, uint64_t limit) {
    int code = 0;
    GPS_LOCKED(&state.lock);
    const uint64_t now = gps_clock_monotonic();
    if (!state.waiting_since)
        state.waiting_since = now;
    const uint64_t waited = now - state.waiting_since;
    const struct timespec until = gps_clock_in(waited < limit ? limit - waited : 0);
    while (state.running && gps_registry_any_ending(region) && code == 0)
        code = gps_thread_wait(&state.changed, &state.lock.mutex, &until);
    if (code == 0)
        state.waiting_since = 0;
    return state.endings != endings;
}

bool gps_open_cache_retry_after(int code, const struct gps_import *import, unsigned endings) {
    /* Refused for memory of the same exporter in another context (H200, driver 580, 2026-11-23). */
    const bool elsewhere = code == GPS_INVALID_HANDLE;
    /* ALREADY_MAPPED: refused for a close, or for older memory in its place. */
    if (!elsewhere && code != GPS_ALREADY_MAPPED && code != GPS_OUT_OF_MEMORY)
        return false;
    GPS_SCOPE();
    if (gps_registry_expire(elsewhere ? import->context : 0))
        open_cache_wake();
    return wait_for_end(&import->region, endings, LONG_WAIT);
}

bool gps_open_cache_reclaim_memory(void) {
    static const struct gps_import none;
    return gps_open_cache_active &&
           gps_open_cache_retry_after(GPS_OUT_OF_MEMORY, &none, state.endings);
}

/* --- opens --- */

/* No lock but the registry's: a handler of the program's may leave by longjmp. */
bool gps_open_cache_open(const struct gps_import *import, unsigned flags, uint64_t *pointer) {
    const int error = errno;
    if (flags != GPS_OPEN_FLAGS || !import->context || !gps_registry_cached().count)
        return false;
    const bool open = is_unchanged() && gps_registry_uncache(&import->region, import->context,
                                                             gps_trace_kept(), pointer);
    if (open)
        gps_freed_forget(GPS_FREED_IMPORT, *pointer);
    errno = error;
    return open;
}

unsigned gps_open_cache_before_driver(const struct gps_import *import) {
    GPS_SCOPE();
    gps_open_cache_resume(); /* where a signal handler has left the end of a context by longjmp */
    if (gps_registry_cached().count)
        read_changes();
    if (gps_registry_any_ending(&import->region)) {
        open_cache_wake(); /* read_changes may have taken the event that wakes the thread */
        wait_for_thread(&import->region);
        wait_for_end(&import->region, state.endings, OPEN_WAIT);
    }
    return state.endings;
}

/* --- the watching thread --- */

/* False: the program has closed the watch and nothing is left, or the process ends. */
static bool next_watch(struct gps_watch *watch) {
    GPS_LOCKED(&state.lock);
    *watch = state.watch;
    if (!state.watching)
        watch->fd = -1;
    const bool left = gps_registry_any_ending(NULL);
    const bool running = gps_open_cache_active && (state.watching || left);
    state.running = running;
    if (!left)
        state.waiting_since = 0;
    pthread_cond_broadcast(&state.changed);
    return running;
}

static void *open_cache_run(void *unused) {
    struct gps_watch watch;
    prctl(PR_SET_NAME, "gpushare-cache");
    while (next_watch(&watch)) {
        gps_watch_sleep(&watch, GPS_SECOND);
        read_changes();
        while (end_oldest(0))
            ;
        for (unsigned i = 0; i < GPS_OPEN_CACHE_MAX && gps_import_slot_correct(0); i++)
            ; /* one pass: the program opens and closes them meanwhile */
    }
    return unused;
}

/* --- what may be cached --- */

/* Whether the region is as it was opened, and its owner lives. */
static bool is_ready(const struct gps_import *import) {
    struct gps_region_record record;
    return gps_region_read(gps_membership_store(), &import->region, &record, NULL) == 0 &&
           record.generation == import->generation && record.status.state == GPS_STATE_READY &&
           gps_owner_equal(&record.owner, &import->exporter.owner) &&
           gps_lease_probe(gps_membership_store(), &record.owner) == GPS_ALIVE;
}

/* The files are watched before they are read: a change is seen by the watch or by the read. */
void gps_open_cache_opened(const struct gps_import *import) {
    if (!import->generation || import->vmm || !import->context || import->slot == GPS_NO_SLOT ||
        import->size > gps_process_config()->options.open_cache_bytes)
        return;
    GPS_SCOPE();
    const int record_file = watch_files(import);
    if (record_file >= 0 && !is_ready(import) && gps_registry_outdate(record_file))
        open_cache_wake();
}

/* --- closes --- */

/* As with the driver's close: without a context the program closes nothing. */
bool gps_open_cache_may_keep(void) {
    uint64_t context = 0;
    return gps_ops->context(&context) == GPS_OK && context;
}

/* Ends the oldest imports of the context whose kernels a close waits for in any case; none while a
 * context is being destroyed. */
static void keep_limits(uint64_t context) {
    const struct gps_options *options = &gps_process_config()->options;
    struct gps_cached sum = gps_registry_cached();
    while ((sum.count > options->open_cache || sum.bytes > options->open_cache_bytes) &&
           end_oldest(context))
        sum = gps_registry_cached();
}

void gps_open_cache_closed(const struct gps_import *import) {
    if (!import->cache.in_slot) {
        GPS_SCOPE();
        gps_import_slot_correct(import->pointer);
        gps_region_event_cached(import);
    }
    keep_limits(import->context);
}

/* --- contexts and the process end --- */

/* Waits until no import is being ended, for a while at most: the driver may wait for a kernel. */
static void pause_for(unsigned more) {
    const struct timespec until = gps_clock_in(LONG_WAIT);
    int code = 0;
    GPS_LOCKED(&state.lock);
    state.paused += more;
    while (state.busy && code == 0)
        code = gps_thread_wait(&state.changed, &state.lock.mutex, &until);
}

void gps_open_cache_pause(void) {
    pause_for(!has_paused);
    has_paused = true;
}

void gps_open_cache_resume(void) {
    if (!has_paused)
        return;
    has_paused = false;
    gps_lock_take(&state.lock);
    state.paused--;
    gps_lock_give(&state.lock);
    open_cache_wake();
}

void gps_open_cache_stop(void) {
    gps_open_cache_active = false;
    pause_for(1);
}

void gps_open_cache_reset(void) {
    if (state.watching)
        gps_watch_close(&state.watch);
    memset((void *)&state, 0, sizeof(state));
    gps_open_cache_active = gps_open_cache_used = has_paused = false;
}
