/* close_before_free.c - see close_before_free.h. The way of one cudaFree begins at the end. */
#include "close_before_free.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "audit/policy.h"
#include "audit/region_history.h"
#include "audit/reporter.h"
#include "export.h"
#include "happenings.h"
#include "importers.h"
#include "process/background.h"
#include "process/driver_ops.h"
#include "process/process.h"
#include "process/scope.h"
#include "process/thread.h"
#include "process/watch.h"
#include "registry/freed_history.h"
#include "stack/trace.h"
#include "util/clock.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t idle;  /* no pass is under way */
    pthread_cond_t freed; /* a region is freed, and out of the list */
    struct gps_export *list;
    unsigned passes;        /* under way */
    _Atomic unsigned count; /* of the list, to be read without the lock */
    _Atomic uint64_t last;  /* when one left it (CLOCK_MONOTONIC) */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .idle = PTHREAD_COND_INITIALIZER,
           .freed = PTHREAD_COND_INITIALIZER};

static bool any_left(void);
static uint64_t reap(void);
static struct gps_background reaper = {.name = "gpushare-reaper",
                                       .watched = GPS_WATCH_PROCS,
                                       .turn = reap,
                                       .left = any_left,
                                       .lock = PTHREAD_MUTEX_INITIALIZER};

/* --- the regions that wait --- */

void gps_deferred_add(struct gps_export *region, bool busy) {
    pthread_mutex_lock(&state.lock);
    region->busy = busy;
    region->next = state.list;
    region->link = &state.list;
    if (region->next)
        region->next->link = &region->next;
    state.list = region;
    state.count++;
    pthread_mutex_unlock(&state.lock);
}

void gps_deferred_remove(struct gps_export *region) {
    pthread_mutex_lock(&state.lock);
    region->busy = region->freeing = false;
    state.last = gps_clock_monotonic();
    state.count--;
    pthread_cond_broadcast(&state.freed);
    *region->link = region->next;
    if (region->next)
        region->next->link = region->link;
    pthread_mutex_unlock(&state.lock);
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
    pthread_mutex_lock(&state.lock);
    const struct gps_export *region;
    while ((region = find(address)) && region->freeing)
        pthread_cond_wait(&state.freed, &state.lock);
    enum gps_deferral found = GPS_NOT_DEFERRED;
    if (region) {
        *base = region->pointer;
        found = region->leaving ? GPS_LEAVING : GPS_DEFERRED;
    }
    pthread_mutex_unlock(&state.lock);
    gps_scope_end(&scope);
    return found;
}

enum gps_deferral gps_deferred_find(uint64_t address, uint64_t *base) {
    return atomic_load_explicit(&state.count, memory_order_relaxed) ? find_waiting(address, base)
                                                                    : GPS_NOT_DEFERRED;
}

void gps_deferred_freed(uint64_t pointer) {
    pthread_mutex_lock(&state.lock);
    struct gps_export *region = find(pointer);
    if (region)
        region->reported = true; /* there is no leak to report */
    pthread_mutex_unlock(&state.lock);
}

static bool any_left(void) {
    return atomic_load(&state.count);
}

/* When the next hand-over ends; UINT64_MAX: none is open. What others are busy with is theirs. */
static uint64_t next_end(void) {
    uint64_t end = UINT64_MAX;
    pthread_mutex_lock(&state.lock);
    for (const struct gps_export *region = state.list; region; region = region->next)
        if (!region->busy && region->final && !region->claimed && !region->held &&
            region->until < end)
            end = region->until;
    pthread_mutex_unlock(&state.lock);
    return end;
}

/* --- passes --- */

static void wait_idle(enum gps_patience patience) {
    const struct timespec until = gps_clock_in(2);
    int code = 0;
    while (state.passes && code == 0)
        code = patience == GPS_VERY_PATIENT ? pthread_cond_wait(&state.idle, &state.lock)
                                            : gps_thread_wait(&state.idle, &state.lock, &until);
}

struct gps_export *gps_deferred_take(uint64_t context, enum gps_patience patience) {
    struct gps_export *work = NULL;
    pthread_mutex_lock(&state.lock);
    if (patience != GPS_HASTY)
        wait_idle(patience);
    state.passes++;
    for (struct gps_export *region = state.list; region; region = region->next) {
        if (region->busy || (context && region->context != context))
            continue;
        region->busy = true;
        region->work = work;
        work = region;
    }
    pthread_mutex_unlock(&state.lock);
    gps_importers_mark(work);
    return work;
}

void gps_deferred_put_back(struct gps_export *region) {
    pthread_mutex_lock(&state.lock);
    region->busy = false;
    pthread_mutex_unlock(&state.lock);
}

void gps_deferred_done(void) {
    pthread_mutex_lock(&state.lock);
    if (--state.passes == 0)
        pthread_cond_broadcast(&state.idle);
    pthread_mutex_unlock(&state.lock);
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
    pthread_mutex_lock(&state.lock);
    region->freeing = true;
    pthread_mutex_unlock(&state.lock);
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

bool gps_deferred_relieve(void) {
    struct gps_scope scope;
    if (!any_left()) /* the last may have gone since the driver answered */
        return gps_clock_monotonic() - state.last < GPS_SECOND;
    gps_scope_begin(&scope);
    gps_deferred_each(0, GPS_PATIENT, free_if_due, NULL); /* after the reaper's pass */
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

/* --- the program frees a region --- */

static struct gps_answer ask(enum gps_known known, bool waited) {
    const struct gps_options *options = &gps_process_config()->options;
    return gps_policy(&(struct gps_question){.ask = GPS_ASK_FREE,
                                             .known = known,
                                             .mode = options->mode,
                                             .on_free = options->on_free,
                                             .waited = waited,
                                             .exiting = gps_process_exiting()});
}

/* Refusing takes nothing back: while there is an importer the region stays open to others. */
static bool is_refused(const struct gps_export *region) {
    const struct gps_options *options = &gps_process_config()->options;
    return options->mode == GPS_MODE_SHARE && options->on_free == GPS_FREE_REFUSE &&
           gps_importers_any(region);
}

/* Closes the region first and looks for importers then: see import.h for the other half. */
static struct gps_answer ask_about(struct gps_export *region, bool waited) {
    struct gps_party users[GPS_USERS_REPORTED];
    struct gps_cachers cachers = {0};
    if (region->rule && region->rule->ready == GPS_READY_FREE && !region->final)
        return ask(GPS_KNOWN_RESULT, waited);
    const bool closed = gps_process_config()->options.mode != GPS_MODE_SHARE ||
                        is_refused(region) || gps_export_close_unheld(region);
    const int count =
        closed ? gps_importers_and_cachers(region, users, GPS_USERS_REPORTED, &cachers) : -EIO;
    region->cached = count == 0 && cachers.count > 0;
    if (gps_record_over(&region->record) && (count || region->cached))
        (void)gps_export_close(region); /* else the reaper tries again */
    const struct gps_answer answer = ask(count            ? GPS_KNOWN_HELD
                                         : region->cached ? GPS_KNOWN_CACHED
                                                          : GPS_KNOWN_EXPORTED,
                                         waited);
    if (answer.finding != GPS_NO_FINDING)
        gps_report_held(region, &answer, users, count);
    return answer;
}

/* While this thread waits or synchronises, another one's free must find the region somewhere. */
static struct gps_answer ask_and_wait(struct gps_export *region) {
    struct gps_answer answer = ask_about(region, false);
    const bool puts_off = answer.verdict != GPS_FORWARD && answer.verdict != GPS_DENY;
    if (puts_off)
        gps_deferred_add(region, true);
    if (puts_off && region->cached) {
        gps_importers_let_go(region);
        answer = ask_about(region, false);
    }
    if (answer.verdict == GPS_WAIT) {
        gps_importers_wait(region, gps_process_config()->options.free_timeout);
        answer = ask_about(region, true);
    }
    if (puts_off && (answer.verdict == GPS_FORWARD || answer.verdict == GPS_DENY))
        gps_deferred_remove(region);
    return answer;
}

/* The memory stays: the region is what it was. */
static void put_back(const struct gps_alloc *alloc, enum gps_state was) {
    if (alloc->region->record.status.state != (uint32_t)was)
        gps_export_set_state(alloc->region, was, 0);
    gps_registry_add(alloc);
}

static struct gps_answer prepare(const struct gps_alloc *alloc, enum gps_state was) {
    struct gps_scope scope;
    const uint32_t freed = gps_trace_kept();
    gps_scope_begin(&scope);
    /* until it is allocated again, or put back */
    gps_freed_note_allocation(alloc, freed);
    gps_region_history_publish(alloc->region, freed);
    const struct gps_answer answer = ask_and_wait(alloc->region);
    if (answer.verdict == GPS_DENY)
        put_back(alloc, was);
    else if (answer.verdict != GPS_HAND_OVER)
        gps_export_unname(alloc->region);
    gps_scope_end(&scope);
    return answer;
}

/* The driver's free is the program's own call: signals and capture mode are as it left them. */
static int free_now(const struct gps_alloc *alloc, enum gps_state was,
                    struct gps_release release_by) {
    const int code = release_by.call(alloc->pointer, release_by.stream);
    struct gps_scope scope;
    gps_scope_begin(&scope);
    if (code == GPS_OK) {
        gps_export_end(alloc->region);
    } else {
        gps_export_rename(alloc->region);
        put_back(alloc, was);
    }
    gps_scope_end(&scope);
    return code;
}

/* From now on the region is the reaper's. Should that not start, the next deferral tries again. */
static void defer(struct gps_export *region, bool result) {
    gps_happened_put_off(region, result);
    if (result)
        gps_export_make_final(region);
    gps_deferred_put_back(region);
    (void)gps_background_start(&reaper);
}

static int put_off(const struct gps_alloc *alloc, enum gps_state was, bool result, bool ordered) {
    struct gps_scope scope;
    int code = gps_scope_enter(&scope, alloc->context);
    if (code == GPS_OK && (result || !ordered)) /* a free on a stream waits for nothing */
        code = gps_scope_synchronize();
    if (code == GPS_OK) {
        defer(alloc->region, result);
    } else {
        gps_deferred_remove(alloc->region);
        gps_export_rename(alloc->region);
        put_back(alloc, was);
    }
    gps_scope_end(&scope);
    return code;
}

int gps_close_before_free(const struct gps_alloc *alloc, struct gps_release release_by) {
    const enum gps_state was = (enum gps_state)alloc->region->record.status.state;
    const struct gps_answer answer = prepare(alloc, was);
    switch (answer.verdict) {
    case GPS_DENY:
        return answer.code;
    case GPS_FORWARD:
        return free_now(alloc, was, release_by);
    default:
        return put_off(alloc, was, answer.verdict == GPS_HAND_OVER, release_by.ordered);
    }
}
