/* waiting.c - see waiting.h. */
#include "waiting.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "directory/region.h"
#include "lifecycle/lifecycle.h"

enum { BUCKETS = 256 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t idle; /* no pass is under way */
    struct gps_export *list;
    unsigned passes; /* under way */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER};

/* --- who holds what, as the directory says now --- */

struct scan {
    struct gps_export *buckets[BUCKETS]; /* by the first byte of the id, which is a hash */
};

static bool mark_held(void *arg, const struct gps_proc *proc) {
    const struct scan *scan = arg;
    if (!proc->alive || gps_owner_equal(&proc->header.owner, gps_life_self()))
        return true;
    for (unsigned i = 0; i < proc->slot_count; i++) {
        const struct gps_id *id = &proc->slots[i].region;
        for (struct gps_export *region = scan->buckets[id->bytes[0]]; region;
             region = region->same_bucket) {
            if (!gps_id_equal(&region->record.id, id))
                continue;
            region->held = true;
            if (proc->slots[i].state == GPS_SLOT_OPEN) /* an intent may still come to nothing */
                region->claimed = region->final;
        }
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

/* --- passes --- */

void gps_waiting_add(struct gps_export *region, bool busy) {
    pthread_mutex_lock(&state.lock);
    region->busy = busy;
    region->next = state.list;
    region->link = &state.list;
    if (region->next)
        region->next->link = &region->next;
    state.list = region;
    pthread_mutex_unlock(&state.lock);
}

static void wait_idle(enum gps_patience patience) {
    struct timespec until;
    int status = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 2;
    while (state.passes && status == 0)
        status = patience == GPS_VERY_PATIENT
                     ? pthread_cond_wait(&state.idle, &state.lock)
                     : pthread_cond_clockwait(&state.idle, &state.lock, CLOCK_MONOTONIC, &until);
}

struct gps_export *gps_waiting_take(uint64_t context, enum gps_patience patience) {
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
    look(work);
    return work;
}

void gps_waiting_put_back(struct gps_export *region) {
    pthread_mutex_lock(&state.lock);
    region->busy = false;
    pthread_mutex_unlock(&state.lock);
}

void gps_waiting_remove(struct gps_export *region) {
    pthread_mutex_lock(&state.lock);
    region->busy = false;
    *region->link = region->next;
    if (region->next)
        region->next->link = region->link;
    pthread_mutex_unlock(&state.lock);
}

void gps_waiting_done(void) {
    pthread_mutex_lock(&state.lock);
    if (--state.passes == 0)
        pthread_cond_broadcast(&state.idle);
    pthread_mutex_unlock(&state.lock);
}

/* --- questions --- */

bool gps_waiting_any(void) {
    pthread_mutex_lock(&state.lock);
    const bool any = state.list != NULL;
    pthread_mutex_unlock(&state.lock);
    return any;
}

bool gps_waiting_has(uint64_t pointer) {
    bool found = false;
    pthread_mutex_lock(&state.lock);
    for (const struct gps_export *region = state.list; region && !found; region = region->next)
        found = region->pointer == pointer && !region->leaving;
    pthread_mutex_unlock(&state.lock);
    return found;
}

void gps_waiting_freed(uint64_t pointer) {
    pthread_mutex_lock(&state.lock);
    for (struct gps_export *region = state.list; region; region = region->next)
        if (region->pointer == pointer)
            region->reported = true; /* there is no leak to report */
    pthread_mutex_unlock(&state.lock);
}

uint64_t gps_waiting_next_end(void) {
    uint64_t end = UINT64_MAX;
    pthread_mutex_lock(&state.lock);
    for (const struct gps_export *region = state.list; region; region = region->next)
        if (region->final && !region->claimed && !region->held && region->record.status.until < end)
            end = region->record.status.until;
    pthread_mutex_unlock(&state.lock);
    return end;
}

void gps_waiting_reset(void) {
    memset((void *)&state, 0, sizeof(state));
    pthread_cond_init(&state.idle, NULL);
}
