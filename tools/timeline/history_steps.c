/* history_steps.c - bytes in use, and what they were without sharing. See history.h. */
#include <stdlib.h>

#include "cli/tool.h"
#include "history.h"

struct change {
    int64_t time, used, without;
};

struct changes {
    struct change *list;
    size_t count;
};

static void add(struct changes *changes, int64_t time, int64_t used, int64_t without) {
    if (time == HISTORY_OPEN)
        return;
    changes->list = tool_grow(changes->list, changes->count, sizeof(*changes->list));
    changes->list[changes->count++] = (struct change){time, used, without};
}

static int64_t start_of(const struct history *history, const struct history_lifetime *lifetime) {
    return lifetime->created != HISTORY_OPEN    ? lifetime->created
           : lifetime->exported != HISTORY_OPEN ? lifetime->exported
                                                : history->begin;
}

/* Without sharing each process that holds a region would have one of its own. */
static void add_regions(struct changes *changes, const struct history *history) {
    for (size_t i = 0; i < history->lifetime_count; i++) {
        const struct history_lifetime *lifetime = &history->lifetimes[i];
        add(changes, start_of(history, lifetime), lifetime->size, lifetime->size);
        add(changes, lifetime->gone, -lifetime->size, -lifetime->size);
    }
    for (size_t i = 0; i < history->hold_count; i++) {
        const struct history_hold *hold = &history->holds[i];
        const struct history_lifetime *lifetime = &history->lifetimes[hold->lifetime];
        if (lifetime->gone != HISTORY_OPEN && hold->from >= lifetime->gone)
            continue; /* a stale handle, opened in vain */
        add(changes, hold->from, 0, lifetime->size);
        add(changes, hold->to, 0, -lifetime->size);
    }
}

/* The last process to leave a shared block ends it; which one that is, no log of one process says.
 * What was saved shrinks first. */
static void add_merges(struct changes *changes, const struct history_merge *merges, size_t count) {
    int64_t saved = 0;
    for (size_t i = 0; i < count; i++) {
        const struct history_merge *merge = &merges[i];
        const int64_t less = merge->unmerged < saved ? merge->unmerged : saved;
        saved += merge->saved - less;
        add(changes, merge->time, merge->merged - merge->saved - merge->unmerged + less,
            merge->merged - merge->unmerged);
    }
}

static int by_time(const void *left, const void *right) {
    const struct change *a = left, *b = right;
    return (a->time > b->time) - (a->time < b->time);
}

void history_sum_up(struct history *history, const struct history_merge *merges, size_t count) {
    struct changes changes = {.count = 0};
    struct history_step now = {.used = 0};
    add_regions(&changes, history);
    add_merges(&changes, merges, count);
    if (changes.count > 0)
        qsort(changes.list, changes.count, sizeof(*changes.list), by_time);
    for (size_t i = 0; i < changes.count; i++) {
        const struct change *change = &changes.list[i];
        now = (struct history_step){change->time, now.used + change->used,
                                    now.without + change->without};
        if (i + 1 < changes.count && changes.list[i + 1].time == change->time)
            continue;
        history->steps = tool_grow(history->steps, history->step_count, sizeof(now));
        history->steps[history->step_count++] = now;
    }
    free(changes.list);
}
