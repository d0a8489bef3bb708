#include "teardown.h"

#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "findings/policy.h"
#include "findings/reporter.h"
#include "frames/exchange.h"
#include "gate/swap.h"
#include "ipc/deferred.h"
#include "ipc/export.h"
#include "ipc/import.h"
#include "ipc/importers.h"
#include "ipc/open_cache.h"
#include "ipc/token.h"
#include "learn/learner.h"
#include "merge/allocation.h"
#include "merge/merger.h"
#include "process/process.h"
#include "registry/hash_table.h"
#include "registry/pool_books.h"
#include "suspend/suspension.h"
#include "threads/watch.h"
#include "util/clock.h"
#include "vmm/vmm_region.h"

/* --- exported regions that are not freed --- */

/* Linked by `work`. */
static void region_collect(void *list, struct gps_alloc *alloc) {
    struct gps_export **const first = list;
    if (!alloc->region)
        return;
    alloc->region->work = *first;
    *first = alloc->region;
}

/* Other threads use and free the regions meanwhile, so these are copies, linked by `work`. At the
 * end of a process that left malloc by longjmp, its lock is held for ever. */
static void region_copy(void *list, struct gps_export *region) {
    struct gps_export **const first = list, *const one = gps_table_allocate(sizeof(*one));
    if (!one)
        return;
    *one = *region;
    one->work = *first;
    *first = one;
}

/* Calls fn for the live regions of a context (0: of any), with their users. */
static void each_live(uint64_t context, bool (*fn)(void *arg, struct gps_export *copy), void *arg) {
    struct gps_export *copies = NULL;
    gps_registry_each_export(context, region_copy, &copies);
    gps_importers_mark(copies);
    for (struct gps_export *next; copies; copies = next) {
        next = copies->work;
        fn(arg, copies);
        gps_table_free(copies, sizeof(*copies));
    }
}

/* --- results --- */

/* LIVE -> CLOSING. With the table's lock, so that a free finds the region in the registry or in the
 * list. The region is pinned until it is handed over: entering a context that another thread has
 * destroyed kills the process. */
static void begin_hand_over(void *list, struct gps_alloc *alloc) {
    alloc->region->at_end = true;
    gps_export_become(alloc->region, GPS_EXPORT_CLOSING);
    gps_deferred_add_pinned(alloc->region);
    region_collect(list, alloc);
}

/* CLOSING -> RESULT. The program never freed it: its end counts as the free. */
static void hand_over_result(struct gps_export *region) {
    struct gps_scope scope;
    if (gps_scope_enter(&scope, region->context) == GPS_OK)
        gps_scope_synchronize();
    gps_scope_end(&scope);
    gps_export_publish_result(region);
    gps_deferred_become(region, GPS_EXPORT_RESULT);
    gps_deferred_unpin(region);
}

static void hand_over_results(uint64_t context) {
    struct gps_export *region = NULL, *next;
    gps_registry_take_exports(context, gps_export_becomes_result, begin_hand_over, &region);
    for (; region; region = next) {
        next = region->work;
        hand_over_result(region);
    }
}

/* --- waiting for importers --- */

/* The wait of the end. */
struct awaited {
    uint64_t linger_until;
    uint64_t left;                   /* how long at most; 0: there is nothing to wait for */
    struct gps_region_record record; /* of the region that is waited for */
    bool result;
};

/* A result is waited for until its hand-over ends. */
static uint64_t region_time_left(const struct gps_export *region, uint64_t linger_until) {
    const bool result = gps_export_is_untaken(region);
    const uint64_t now = result ? gps_clock_now() : gps_clock_monotonic();
    const uint64_t until = result ? region->until : linger_until;
    return until > now ? until - now : 0;
}

static struct gps_answer exit_ask_policy(const struct gps_export *region, bool waited) {
    const struct gps_options *options = &gps_process_config()->options;
    return gps_policy(&(struct gps_question){.ask = GPS_ASK_EXIT,
                                             .known = gps_policy_known(region),
                                             .mode = options->mode,
                                             .waited = waited,
                                             .linger = options->linger != 0});
}

static bool await_region(void *arg, struct gps_export *region) {
    struct awaited *awaited = arg;
    const uint64_t left = region_time_left(region, awaited->linger_until);
    if (exit_ask_policy(region, left == 0).verdict == GPS_WAIT &&
        (!awaited->left || left < awaited->left)) {
        awaited->left = left;
        awaited->record = region->record;
        awaited->result = gps_export_is_untaken(region);
    }
    return false;
}

static struct awaited find_awaited(uint64_t context, uint64_t linger_until) {
    struct awaited awaited = {.linger_until = linger_until};
    gps_deferred_each(context, GPS_PIN_WITHIN_2S, NULL, await_region, &awaited);
    each_live(context, await_region, &awaited);
    return awaited;
}

static uint64_t whole_seconds(uint64_t nanos) {
    return nanos < GPS_SECOND ? nanos : (nanos + GPS_SECOND / 2) / GPS_SECOND * GPS_SECOND;
}

/* Hands over the results in a context (0: in any), and waits for importers as configured. */
static void teardown_hand_over(uint64_t context) {
    const uint64_t linger_until = gps_clock_monotonic() + gps_process_config()->options.linger;
    if (gps_frames_active)
        gps_frames_leave(context);
    hand_over_results(context);
    const struct awaited first = find_awaited(context, linger_until);
    struct awaited next = first;
    struct gps_wait wait;
    if (!first.left)
        return;
    gps_wait_begin(&wait, first.result ? GPS_VIA_WAIT_IMPORTER : GPS_VIA_WAIT_IMPORTERS,
                   first.record.name, &first.record.id, whole_seconds(first.left), GPS_WATCH_PROCS);
    for (; next.left; next = find_awaited(context, linger_until))
        gps_wait_turn(&wait, next.left);
    gps_wait_end(&wait);
}

/* --- the end of the process --- */

/* A result that an importer holds is not reported. */
static bool report_at_exit(void *unused, struct gps_export *region) {
    struct gps_party users[GPS_USERS_REPORTED];
    const struct gps_answer answer = exit_ask_policy(region, true);
    (void)unused;
    if (gps_export_is_untaken(region))
        gps_deferred_report_untaken(region);
    if (answer.finding != GPS_NO_FINDING && region->state != GPS_EXPORT_RESULT)
        gps_report_held(region, &answer, users,
                        gps_importers_of(region, users, GPS_USERS_REPORTED));
    return false;
}

void gps_teardown_exit(void) {
    gps_suspension_stop();
    gps_open_cache_stop();
    gps_vmm_region_stop();
    gps_token_server_stop();
    gps_merger_stop();
    gps_learn_end();
    teardown_hand_over(0);
    gps_deferred_stop(); /* until here other threads may need the memory */
    gps_deferred_each(0, GPS_PIN_WITHIN_2S, NULL, report_at_exit, NULL);
    each_live(0, report_at_exit, NULL);
}

static bool region_unpublish(void *last, struct gps_export *region) {
    gps_deferred_remove(region);
    gps_export_leave(region, !*(const bool *)last && (region->at_end || region->users.held));
    return true;
}

/* Unpublishes live regions. A report has told which ones other processes lose. */
static void unpublish_live(bool last) {
    struct gps_export *region = NULL, *next;
    gps_registry_take_exports(0, NULL, region_collect, &region);
    gps_importers_mark(region);
    for (; region; region = next) {
        const enum gps_known known = gps_policy_known(region);
        next = region->work;
        if (known != GPS_KNOWN_HELD && known != GPS_KNOWN_NOTHING)
            gps_leak_add_export(region);
        gps_export_leave(region, !last);
    }
}

void gps_teardown_unpublish(bool last) {
    gps_deferred_each(0, GPS_PIN_WITHIN_2S, NULL, region_unpublish, &last);
    unpublish_live(last);
    gps_token_leave();
    gps_leak_report_end();
    gps_export_remove_tombstones();
}

/* --- the end of a context --- */

/* Ends the regions that the program had not freed. */
static void end_live(struct gps_export *region, struct gps_reset *reset) {
    gps_importers_mark(region);
    for (struct gps_export *next; region; region = next) {
        next = region->work;
        gps_leak_reset_export(reset, region);
        gps_export_end(region);
    }
}

static void event_end_reference(const struct gps_event *event) {
    gps_report_reference(gps_references_end(event->slot));
}

/* Ends the references of imported pointers of pools, which other processes may see. */
static void purge_pointers(uint64_t context, uint32_t era) {
    struct gps_pool_pointer batch[16];
    unsigned count;
    while (
        (count = gps_pool_pointer_take_of(context, era, batch, sizeof(batch) / sizeof(batch[0]))))
        for (unsigned i = 0; i < count; i++)
            if (batch[i].imports)
                gps_report_reference(gps_references_end(batch[i].slot));
}

static void purge(uint64_t context, uint32_t era, struct gps_reset *reset) {
    struct gps_export *live = NULL;
    gps_registry_purge(context, era, region_collect, &live);
    end_live(live, reset);
    gps_import_purge(context, era, reset);
    gps_registry_purge_events(context, era, event_end_reference);
    purge_pointers(context, era);
    gps_leak_report_reset(reset);
}

static void region_end(struct gps_export *region) {
    gps_deferred_remove(region);
    gps_export_end(region);
}

/* Until the driver has answered, the context's regions are pinned, so the reaper does not free
 * them. No thread reads memory or queries streams meanwhile: a kernel of ours in a context that
 * ends loses the device, and entering one that has ended kills the process. */
int gps_teardown_context(uint64_t context, bool wait, gps_destroy_fn *destroy, void *arg) {
    struct gps_scope scope;
    struct gps_reset reset = {.context = context};
    const bool looked_at = gps_gate_active || gps_learn_active;
    bool destroyed = false;
    uint64_t before = 0;
    gps_scope_begin(&scope);
    if (wait)
        teardown_hand_over(context);
    struct gps_export *region = gps_deferred_pin(context, GPS_PIN_ALL, NULL), *next;
    gps_open_cache_pause();
    if (looked_at) {
        gps_swap_forbid();
        before = gps_streams_mark();
    }
    gps_scope_end(&scope);
    const uint32_t era = gps_registry_begin_era();
    const int code = destroy(arg, &destroyed, &before);
    gps_scope_begin(&scope);
    if (looked_at && destroyed) {
        gps_merge_purge(context, before);
        gps_learn_purge(context, before);
    }
    if (looked_at)
        gps_swap_permit();
    if (destroyed) { /* with regions that other threads have freed meanwhile */
        gps_deferred_lose(context);
        region = gps_deferred_pin(context, GPS_PIN_ALL, NULL);
    }
    for (; region; region = next) {
        next = region->work;
        if (destroyed)
            region_end(region);
        else
            gps_deferred_unpin(region);
    }
    if (destroyed)
        purge(context, era, &reset);
    gps_open_cache_resume();
    gps_scope_end(&scope);
    return code;
}
