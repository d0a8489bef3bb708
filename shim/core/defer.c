/* defer.c - see defer.h. */
#include "defer.h"

#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "export.h"
#include "life.h"
#include "ops.h"
#include "policy.h"
#include "report.h"
#include "watch.h"

enum { BUCKETS = 256, SHOWN_USERS = 16 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t idle;     /* nobody is busy */
    struct gps_export *list; /* by next */
    unsigned busy;           /* passes under way */
    bool reaping;            /* the thread runs */
    bool stop;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER};

/* --- one pass: who is held, what is due, free it --- */

struct scan {
    struct gps_export *buckets[BUCKETS]; /* by the first byte of the id, which is a hash */
};

static bool mark_held(void *arg, const struct gps_proc *proc) {
    const struct scan *scan = arg;
    if (proc->status < 0 || !proc->alive || gps_owner_equal(&proc->header.owner, gps_life_self()))
        return true;
    for (unsigned i = 0; i < proc->slot_count; i++) {
        const struct gps_id *id = &proc->slots[i].region;
        for (struct gps_export *region = scan->buckets[id->bytes[0]]; region;
             region = region->same_bucket)
            if (gps_id_equal(&region->record.id, id))
                region->held = true;
    }
    return true;
}

/* Sets held of every region in the list to what is so now. A directory that cannot be read counts
 * as everybody holding everything: better late than pulled away. */
static void look(struct gps_export *work) {
    struct scan scan = {0};
    for (struct gps_export *region = work; region; region = region->work) {
        /* Before the slots are read: whoever has taken it is then still seen, or has closed it. */
        if (region->final && !region->claimed)
            region->claimed = gps_region_taken(gps_life_store(), &region->record.id);
        region->held = false;
        region->same_bucket = scan.buckets[region->record.id.bytes[0]];
        scan.buckets[region->record.id.bytes[0]] = region;
    }
    const bool known =
        work && gps_life_store() && gps_proc_each(gps_life_store(), mark_held, &scan) == 0;
    for (struct gps_export *region = work; region; region = region->work)
        region->held |= !known;
}

static void report_unclaimed(const struct gps_export *region) {
    struct gps_report report = gps_report_new(GPS_SHARE_TIMEOUT);
    gps_report_about_export(&report, region);
    report.detail = "no importer took the result within its hand-over time; it was freed";
    gps_report_send(&report);
}

/* Whether the memory can go now. A result waits to be claimed, then to be let go of. */
static bool is_due(struct gps_export *region) {
    if (region->leaving || region->held)
        return false;
    if (!region->final || region->claimed)
        return true;
    if (gps_life_now() < region->record.status.until)
        return false;
    report_unclaimed(region);
    return true;
}

static void release(const struct gps_export *region) {
    struct gps_scope scope;
    if (gps_scope_enter(&scope, region->context) == GPS_OK)
        gps_ops->release(region->pointer);
    gps_scope_end(&scope);
}

/* Under the lock. Two seconds at most: a pass may be in a free that waits for a kernel. */
static void wait_idle(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 2;
    while (state.busy && pthread_cond_timedwait(&state.idle, &state.lock, &until) == 0)
        continue;
}

/* Marks as busy, and links by work, all that nobody else is busy with. Patient: all there is, so it
 * waits for the passes under way; no other can begin in between. */
static struct gps_export *begin_pass(uint64_t context, bool patient) {
    struct gps_export *work = NULL;
    pthread_mutex_lock(&state.lock);
    if (patient)
        wait_idle();
    state.busy++;
    for (struct gps_export *region = state.list; region; region = region->next) {
        if (region->busy || (context && region->context != context))
            continue;
        region->busy = true;
        region->work = work;
        work = region;
    }
    pthread_mutex_unlock(&state.lock);
    return work;
}

static void unlink_region(const struct gps_export *region) {
    struct gps_export **link = &state.list;
    while (*link && *link != region)
        link = &(*link)->next;
    if (*link)
        *link = region->next;
}

static void finish(struct gps_export *region, bool over) {
    pthread_mutex_lock(&state.lock);
    region->busy = false;
    if (over)
        unlink_region(region);
    pthread_mutex_unlock(&state.lock);
    if (over)
        gps_export_end(region);
}

static void end_pass(void) {
    pthread_mutex_lock(&state.lock);
    if (--state.busy == 0)
        pthread_cond_broadcast(&state.idle);
    pthread_mutex_unlock(&state.lock);
}

static bool stopped(void) {
    pthread_mutex_lock(&state.lock);
    const bool stop = state.stop;
    pthread_mutex_unlock(&state.lock);
    return stop;
}

static unsigned pass(bool patient) {
    unsigned freed = 0;
    struct gps_export *work = begin_pass(0, patient), *next;
    look(work);
    for (; work; work = next) {
        next = work->work;
        const bool due = !stopped() && is_due(work);
        if (due)
            release(work);
        finish(work, due);
        freed += due;
    }
    end_pass();
    return freed;
}

/* --- the reaper --- */

/* The time to the next end of a hand-over, a second at most. */
static uint64_t patience(void) {
    uint64_t wait = 1000000000u;
    const uint64_t now = gps_life_now();
    pthread_mutex_lock(&state.lock);
    for (const struct gps_export *region = state.list; region; region = region->next)
        if (region->final && !region->claimed) {
            const uint64_t until = region->record.status.until;
            const uint64_t left = until > now ? until - now : 0;
            wait = left < wait ? left : wait;
        }
    pthread_mutex_unlock(&state.lock);
    return wait;
}

static bool nothing_left(void) {
    pthread_mutex_lock(&state.lock);
    const bool nothing = !state.list || state.stop;
    if (nothing)
        state.reaping = false;
    pthread_mutex_unlock(&state.lock);
    return nothing;
}

static void *reap(void *unused) {
    const struct timespec breath = {.tv_nsec = 5000000}; /* many changes at once are one */
    struct gps_watch watch;
    prctl(PR_SET_NAME, "gpushare-reaper");
    gps_watch_open(&watch, gps_life_store(), GPS_WATCH_PROCS);
    while (!nothing_left()) {
        pass(false);
        gps_watch_wait(&watch, patience(), NULL);
        nanosleep(&breath, NULL);
    }
    gps_watch_close(&watch);
    return unused;
}

/* Under the lock. The scope has blocked all signals, and the thread inherits that: the program's
 * handlers never run on it. */
static void start_reaper(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    if (state.reaping || state.stop || pthread_attr_init(&attributes) != 0)
        return;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 256 * 1024);
    state.reaping = pthread_create(&thread, &attributes, reap, NULL) == 0;
    pthread_attr_destroy(&attributes);
}

void gps_defer_add(struct gps_export *region) {
    pthread_mutex_lock(&state.lock);
    region->next = state.list;
    state.list = region;
    start_reaper();
    pthread_mutex_unlock(&state.lock);
}

void gps_defer_result(struct gps_export *region) {
    region->final = true;
    gps_export_set_state(region, GPS_STATE_FINAL, gps_life_now() + region->rule->handover);
    gps_defer_add(region);
}

bool gps_defer_has(uint64_t pointer) {
    bool found = false;
    pthread_mutex_lock(&state.lock);
    for (const struct gps_export *region = state.list; region && !found; region = region->next)
        found = region->pointer == pointer && !region->leaving;
    pthread_mutex_unlock(&state.lock);
    return found;
}

bool gps_defer_relieve(void) {
    pthread_mutex_lock(&state.lock);
    const bool any = state.list != NULL;
    pthread_mutex_unlock(&state.lock);
    if (!any)
        return false;
    struct gps_scope scope;
    gps_scope_begin(&scope);
    pass(true); /* what the reaper is freeing right now is memory, too */
    gps_scope_end(&scope);
    return true; /* worth another try in any case: the reaper may have freed it before we looked */
}

void gps_defer_wait(const struct gps_export *region, uint64_t nanos, const sigset_t *signals) {
    const uint64_t until = gps_life_now() + nanos;
    struct gps_watch watch;
    gps_watch_open(&watch, gps_life_store(), GPS_WATCH_PROCS);
    while (gps_export_users(region, NULL, 0)) {
        const uint64_t now = gps_life_now();
        if (now >= until)
            break;
        gps_watch_wait(&watch, until - now, signals);
    }
    gps_watch_close(&watch);
}

/* --- settling: at the end of the process, or of a context --- */

struct pick {
    uint64_t context; /* 0: any */
    uint64_t pointer;
};

static void pick_one(void *arg, struct gps_export *region) {
    struct pick *pick = arg;
    if (!pick->context || region->context == pick->context)
        pick->pointer = region->pointer;
}

/* A result that the program never freed is final now; other exports come along to be watched. */
static void bring(struct gps_alloc *alloc) {
    struct gps_export *region = alloc->region;
    region->leaving = true;
    if (region->rule && region->rule->ready == GPS_READY_FREE &&
        gps_life_config()->options.mode == GPS_MODE_SHARE) {
        struct gps_scope scope;
        if (gps_scope_enter(&scope, region->context) == GPS_OK)
            gps_ops->synchronize();
        gps_scope_end(&scope);
        region->final = true;
        gps_export_set_state(region, GPS_STATE_FINAL, gps_life_now() + region->rule->handover);
    }
    pthread_mutex_lock(&state.lock);
    region->next = state.list;
    state.list = region;
    pthread_mutex_unlock(&state.lock);
}

static void gather(uint64_t context) {
    struct gps_alloc alloc;
    struct pick pick = {.context = context};
    for (gps_registry_each_export(pick_one, &pick); pick.pointer;
         pick.pointer = 0, gps_registry_each_export(pick_one, &pick))
        if (gps_registry_take(pick.pointer, &alloc))
            bring(&alloc);
}

/* Whether policy still waits for this region, given what is known. */
static bool is_awaited(struct gps_export *region, uint64_t now, uint64_t linger_until) {
    const struct gps_options *options = &gps_life_config()->options;
    const bool result = region->final && !region->claimed;
    const struct gps_question question = {
        .ask = GPS_ASK_EXIT,
        .known = result         ? GPS_KNOWN_RESULT
                 : region->held ? GPS_KNOWN_HELD
                                : GPS_KNOWN_NOTHING,
        .mode = options->mode,
        .waited = now >= (result ? region->record.status.until : linger_until),
        .linger = options->linger != 0};
    return gps_policy(&question).verdict == GPS_WAIT;
}

static bool any_awaited(uint64_t context, uint64_t linger_until, uint64_t *patience_left) {
    bool awaited = false;
    const uint64_t now = gps_life_now();
    struct gps_export *work = begin_pass(context, true), *next;
    look(work);
    for (; work; work = next) {
        next = work->work;
        if (is_awaited(work, now, linger_until)) {
            const uint64_t until =
                work->final && !work->claimed ? work->record.status.until : linger_until;
            if (!awaited || until - now < *patience_left)
                *patience_left = until - now;
            awaited = true;
        }
        finish(work, false);
    }
    end_pass();
    return awaited;
}

void gps_defer_settle(uint64_t context, const sigset_t *signals) {
    const uint64_t linger_until = gps_life_now() + gps_life_config()->options.linger;
    uint64_t left = 0;
    gather(context);
    if (!any_awaited(context, linger_until, &left))
        return;
    struct gps_watch watch;
    gps_watch_open(&watch, gps_life_store(), GPS_WATCH_PROCS);
    while (any_awaited(context, linger_until, &left))
        gps_watch_wait(&watch, left, signals);
    gps_watch_close(&watch);
}

static void report_at_exit(struct gps_export *region) {
    struct gps_owner users[SHOWN_USERS];
    const struct gps_question question = {.ask = GPS_ASK_EXIT,
                                          .known = GPS_KNOWN_HELD,
                                          .mode = gps_life_config()->options.mode,
                                          .waited = true};
    const unsigned count = gps_export_users(region, users, SHOWN_USERS);
    region->held = count != 0;
    if (region->final && !region->claimed && !region->held)
        report_unclaimed(region);
    if (!region->held || (region->final && region->rule))
        return; /* a result that somebody holds has reached its goal */
    struct gps_report report = gps_report_new(gps_policy(&question).finding);
    gps_report_about_export(&report, region);
    report.others = users;
    report.other_count = count < SHOWN_USERS ? count : SHOWN_USERS;
    gps_report_send(&report);
}

void gps_defer_exit(const sigset_t *signals) {
    pthread_mutex_lock(&state.lock);
    state.stop = true;
    wait_idle();
    pthread_mutex_unlock(&state.lock);
    gps_defer_settle(0, signals);
    for (struct gps_export *region = state.list; region; region = region->next)
        report_at_exit(region);
}

struct gps_export *gps_defer_context(uint64_t context) {
    return begin_pass(context, true); /* busy: the reaper will not touch the context from now on */
}

/* The driver refused to destroy the context: what we brought here lives on. */
static void return_to_registry(struct gps_export *region) {
    const struct gps_alloc alloc = {.pointer = region->pointer,
                                    .size = region->record.requested,
                                    .context = region->context,
                                    .epoch = gps_registry_now(),
                                    .kind = GPS_ALLOC_EXPORTED,
                                    .region = region};
    pthread_mutex_lock(&state.lock);
    region->busy = region->leaving = false;
    unlink_region(region);
    pthread_mutex_unlock(&state.lock);
    gps_registry_add(&alloc);
}

void gps_defer_context_done(struct gps_export *work, bool gone) {
    struct gps_export *next;
    for (; work; work = next) {
        next = work->work;
        if (!gone && work->leaving && !work->final)
            return_to_registry(work);
        else
            finish(work, gone);
    }
    end_pass();
}

static void drain(void) {
    struct gps_alloc alloc;
    struct pick pick = {0};
    for (gps_registry_each_export(pick_one, &pick); pick.pointer;
         pick.pointer = 0, gps_registry_each_export(pick_one, &pick))
        if (gps_registry_take(pick.pointer, &alloc))
            gps_export_leave(alloc.region, true);
}

void gps_defer_unpublish(bool last) {
    struct gps_export *region = state.list, *next;
    for (state.list = NULL; region; region = next) {
        next = region->next;
        gps_export_leave(region, !last && (region->leaving || region->held));
    }
    drain(); /* exported after the exit began */
    gps_export_remove_tombstones();
}

void gps_defer_reset(void) {
    memset((void *)&state, 0, sizeof(state));
    pthread_cond_init(&state.idle, NULL);
}
