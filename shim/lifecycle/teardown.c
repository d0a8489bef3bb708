/* teardown.c - see teardown.h. */
#include "teardown.h"

#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "findings/policy.h"
#include "findings/reporter.h"
#include "gate/swap.h"
#include "ipc/deferred.h"
#include "ipc/event.h"
#include "ipc/export.h"
#include "ipc/import_close.h"
#include "ipc/importers.h"
#include "ipc/open_cache.h"
#include "learn/learner.h"
#include "merge/allocation.h"
#include "merge/merger.h"
#include "process/membership.h"
#include "process/process.h"
#include "threads/wait.h"
#include "util/clock.h"
#include "vmm/vmm_region.h"

/* --- bringing together what is still exported --- */

static void move(const struct gps_alloc *alloc) {
    alloc->region->leaving = true;
    gps_deferred_add(alloc->region, false);
}

/* The program never freed it: that it ends says the same. */
static bool is_new_result(const struct gps_export *region) {
    return region->leaving && !region->final && region->rule &&
           region->rule->ready == GPS_READY_FREE;
}

static bool make_final(void *context, struct gps_export *region) {
    if (is_new_result(region) && region->context == *(const uint64_t *)context)
        gps_export_make_final(region);
    return false;
}

/* A kernel may be waited for; other threads have use of the regions meanwhile. */
static void make_results_final(uint64_t context) {
    struct gps_scope scope;
    if (gps_scope_enter(&scope, context) == GPS_OK)
        gps_scope_synchronize();
    gps_scope_end(&scope);
    gps_deferred_each(context, GPS_PATIENT, make_final, &context);
}

/* The keeper has the memory: other processes lose nothing by the end of its creator. */
static bool outlives_us(const struct gps_export *region) {
    return region->vmm && region->record.keep != GPS_KEEP_OWNER;
}

/* --- waiting for importers --- */

/* How long this region is waited for at most: a result until the end of its hand-over. */
static uint64_t time_left(const struct gps_export *region, uint64_t linger_until) {
    const bool result = region->final && !region->claimed;
    const uint64_t now = result ? gps_clock_now() : gps_clock_monotonic();
    const uint64_t until = result ? region->until : linger_until;
    return until > now ? until - now : 0;
}

static bool is_awaited(const struct gps_export *region, uint64_t left) {
    const struct gps_options *options = &gps_process_config()->options;
    const bool result = region->final && !region->claimed;
    const struct gps_question question = {.ask = GPS_ASK_EXIT,
                                          .known = outlives_us(region) ? GPS_KNOWN_NOTHING
                                                   : result            ? GPS_KNOWN_RESULT
                                                   : region->held      ? GPS_KNOWN_HELD
                                                                       : GPS_KNOWN_NOTHING,
                                          .mode = options->mode,
                                          .waited = left == 0,
                                          .linger = options->linger != 0};
    return gps_policy(&question).verdict == GPS_WAIT;
}

struct wait {
    uint64_t linger_until;
    uint64_t left;
    struct gps_region_record record; /* of the region that is waited for */
    bool result;
    uint64_t unfinished; /* a context with results that are not final yet */
};

static bool look_at(void *arg, struct gps_export *region) {
    struct wait *wait = arg;
    if (is_new_result(region))
        wait->unfinished = region->context;
    const uint64_t left = time_left(region, wait->linger_until);
    if (!is_awaited(region, left) || (wait->left && left >= wait->left))
        return false;
    wait->left = left;
    wait->record = region->record;
    wait->result = region->final && !region->claimed;
    return false;
}

static void look(uint64_t context, uint64_t linger_until, struct wait *wait) {
    *wait = (struct wait){.linger_until = linger_until};
    gps_deferred_each(context, GPS_PATIENT, look_at, wait);
}

/* How long there still is something to wait for; 0: nothing. */
static uint64_t patience(uint64_t context, uint64_t linger_until, struct wait *wait) {
    look(context, linger_until, wait);
    while (wait->unfinished) {
        make_results_final(wait->unfinished);
        look(context, linger_until, wait);
    }
    return wait->left;
}

static uint64_t whole_seconds(uint64_t nanos) {
    return nanos < GPS_SECOND ? nanos : (nanos + GPS_SECOND / 2) / GPS_SECOND * GPS_SECOND;
}

/* Hands over the results in a context (0: in any), and waits for importers as configured. */
static void hand_over(uint64_t context) {
    const uint64_t linger_until = gps_clock_monotonic() + gps_process_config()->options.linger;
    gps_registry_move_exports(context, move);
    struct wait first, next;
    if (!patience(context, linger_until, &first))
        return;
    struct gps_wait wait;
    gps_wait_begin(&wait, first.result ? GPS_VIA_WAIT_IMPORTER : GPS_VIA_WAIT_IMPORTERS,
                   first.record.name, &first.record.id, whole_seconds(first.left), GPS_WATCH_PROCS);
    while (patience(context, linger_until, &next))
        gps_wait_turn(&wait, next.left);
    gps_wait_end(&wait);
}

/* --- the end of the process --- */

static void report_held(struct gps_export *region) {
    struct gps_party users[GPS_USERS_REPORTED];
    const struct gps_question question = {.ask = GPS_ASK_EXIT,
                                          .known = GPS_KNOWN_HELD,
                                          .mode = gps_process_config()->options.mode,
                                          .waited = true};
    const int count = gps_importers_of(region, users, GPS_USERS_REPORTED);
    const struct gps_answer answer = gps_policy(&question);
    gps_report_held(region, &answer, users, count);
    region->reported = true;
}

/* A result that is held has reached its goal. */
static bool report_at_exit(void *unused, struct gps_export *region) {
    (void)unused;
    if (region->final && !region->claimed && !region->held)
        gps_deferred_report_unclaimed(region);
    if (region->held && !region->final && !outlives_us(region))
        report_held(region);
    return false;
}

void gps_teardown_exit(void) {
    gps_deferred_stop();
    gps_open_cache_stop();
    gps_vmm_region_stop();
    gps_merger_stop();
    gps_learn_end();
    hand_over(0);
    gps_deferred_each(0, GPS_PATIENT, report_at_exit, NULL);
}

static bool unpublish(void *last, struct gps_export *region) {
    gps_deferred_remove(region);
    if (region->leaving && !region->reported && !region->final && !outlives_us(region))
        gps_leak_add_export(region);
    gps_export_leave(region, !*(const bool *)last && (region->leaving || region->held));
    return true;
}

static void leave(void *unused, struct gps_alloc *alloc) {
    (void)unused;
    gps_export_leave(alloc->region, true);
}

void gps_teardown_unpublish(bool last) {
    gps_deferred_each(0, GPS_PATIENT, unpublish, &last);
    gps_registry_take_exports(0, leave, NULL); /* exported after the exit began */
    gps_leak_report_end();
    gps_export_remove_tombstones();
}

/* --- the end of a context --- */

/* What was brought here lives on: the driver refused to destroy the context, say. */
static void return_to_registry(struct gps_export *region) {
    const struct gps_alloc alloc = {.pointer = region->pointer,
                                    .size = region->record.requested,
                                    .context = region->context,
                                    .epoch = gps_registry_now(),
                                    .trace = region->allocated,
                                    .device = (int16_t)region->device,
                                    .kind = GPS_ALLOC_EXPORTED,
                                    .region = region};
    region->leaving = false;
    gps_deferred_remove(region);
    gps_registry_add(&alloc);
}

struct reclaim {
    uint64_t base;
    bool done;
};

static bool reclaim(void *arg, struct gps_export *region) {
    struct reclaim *wanted = arg;
    const bool found = region->leaving && !region->final && region->pointer == wanted->base;
    if (found)
        return_to_registry(region);
    wanted->done |= found;
    return found;
}

bool gps_teardown_reclaim(uint64_t base) {
    struct reclaim wanted = {.base = base};
    struct gps_scope scope;
    gps_scope_begin(&scope);
    gps_deferred_each(0, GPS_VERY_PATIENT, reclaim, &wanted);
    gps_scope_end(&scope);
    return wanted.done;
}

static void finish(struct gps_export *region, bool destroyed, struct gps_reset *reset) {
    if (destroyed) {
        gps_deferred_remove(region);
        if (region->leaving && !region->final && !outlives_us(region))
            gps_leak_reset_export(reset, region);
        gps_export_end(region);
    } else if (region->leaving && !region->final) {
        return_to_registry(region);
    } else {
        gps_deferred_put_back(region);
    }
}

/* Regions that were not brought together before: the context was not known to end. */
static void forget(void *reset, struct gps_alloc *alloc) {
    if (!alloc->region)
        return;
    alloc->region->held = gps_importers_any(alloc->region);
    gps_leak_reset_export(reset, alloc->region);
    gps_export_end(alloc->region);
}

static void purge(uint64_t context, uint32_t epoch, struct gps_reset *reset) {
    gps_registry_purge(context, epoch, forget, reset);
    gps_import_purge(context, epoch, gps_leak_reset_import, reset);
    gps_event_purge(context, epoch);
    gps_leak_report_reset(reset);
}

/* Until the driver has answered, the reaper keeps away from the context's regions. Nobody looks at
 * memory meanwhile, nor asks streams: a kernel of ours in a context that ends loses the device, and
 * entering one that has ended kills the process. */
int gps_teardown_context(uint64_t context, bool wait, gps_destroy_fn *destroy, void *arg) {
    struct gps_scope scope;
    struct gps_reset reset = {.context = context};
    const bool looked_at = gps_merge_active || gps_learn_active;
    bool destroyed = false;
    gps_scope_begin(&scope);
    if (wait)
        hand_over(context);
    struct gps_export *region = gps_deferred_take(context, GPS_VERY_PATIENT), *next;
    gps_open_cache_pause();
    if (looked_at)
        gps_swap_forbid();
    gps_scope_end(&scope);
    const uint32_t epoch = gps_registry_epoch();
    const int code = destroy(arg, &destroyed);
    gps_scope_begin(&scope);
    if (looked_at && destroyed) {
        gps_merge_purge(context);
        gps_learn_purge(context);
    }
    if (looked_at)
        gps_swap_permit();
    for (; region; region = next) {
        next = region->work;
        finish(region, destroyed, &reset);
    }
    gps_deferred_done();
    if (destroyed)
        purge(context, epoch, &reset);
    gps_open_cache_resume();
    gps_scope_end(&scope);
    return code;
}
