/*
 * imports.c - imports, by address, by (region, context), and those that open_cache.h keeps. See
 * registry.h.
 */
#include <errno.h>

#define NDEBUG /* the lists assert, which prints and ends the program */
#include <utlist.h>

#include "driver/driver_ops.h"
#include "hash_table.h"
#include "registry.h"
#include "util/lock.h"

#define NO_SLOT UINT32_MAX /* references.h */

struct key {
    struct gps_id region;
    uint64_t context;
};

struct node {
    struct gps_import import;
    struct key key;
    UT_hash_handle by_pointer, by_region; /* of what is open or cached */
    struct node *prev, *next;             /* in the list of what is cached, or ending */
};

static struct {
    GPS_LOCK(GPS_RANK_IMPORTS) lock;
    struct node *by_pointer, *by_region;
    struct node *cached; /* the oldest first */
    struct node *ending;
    struct node anchor; /* the first entry of both tables, as in allocations.c */
    /* Of cached ones, also read without the lock. They lie from `lowest` to `highest`; that range
     * only grows until there is none. */
    _Atomic unsigned count;
    _Atomic uint64_t bytes, lowest, highest;
    struct gps_slab slab;
} state;

/* --- with the lock --- */

/* Ends a look-up. */
static bool unlocked(bool answer) {
    gps_lock_give(&state.lock);
    return answer;
}

/* Copies what was found, and ends the look-up. */
static bool give(const struct node *node, struct gps_import *import) {
    if (node)
        *import = node->import;
    return unlocked(node != NULL);
}

static inline struct node *at(uint64_t pointer) {
    struct node *node;
    HASH_FIND(by_pointer, state.by_pointer, &pointer, sizeof(pointer), node);
    return node == &state.anchor ? NULL : node;
}

static inline struct node *of(const struct gps_id *region, uint64_t context) {
    const struct key key = {*region, context};
    struct node *node;
    HASH_FIND(by_region, state.by_region, &key, sizeof(key), node);
    return node == &state.anchor ? NULL : node;
}

static struct node *first(void) {
    return state.by_pointer ? state.by_pointer->by_pointer.next : NULL;
}

static struct node *ending_at(uint64_t pointer) {
    struct node *node = state.ending;
    while (node && node->import.pointer != pointer)
        node = node->next;
    return node;
}

static inline bool is(const struct node *node, enum gps_import_state what) {
    return node && node->import.state == what;
}

static struct node *if_open(struct node *node) {
    return is(node, GPS_IMPORT_OPEN) ? node : NULL;
}

static inline void enter_cache(struct node *node) {
    const uint64_t begin = node->import.pointer, end = begin + node->import.size;
    DL_APPEND(state.cached, node);
    state.count++;
    state.bytes += node->import.size;
    if (state.count == 1 || begin < state.lowest)
        state.lowest = begin;
    if (end > state.highest)
        state.highest = end;
}

static inline void leave_cache(struct node *node) {
    DL_DELETE(state.cached, node);
    state.count--;
    state.bytes -= node->import.size;
    if (state.count == 0)
        state.highest = 0;
}

static inline void leave_tables(struct node *node) {
    if (node->by_pointer.tbl)
        HASH_DELETE(by_pointer, state.by_pointer, node);
    if (node->by_region.tbl)
        HASH_DELETE(by_region, state.by_region, node);
}

#define FROM(state, next) GPS_STATE_ROW(GPS_IMPORT_##state, next),
#define TO(state)         GPS_TO(GPS_IMPORT_##state)

/* A node that has become GONE must not be used any more. */
static inline void become(struct node *node, enum gps_import_state now) {
    static const struct gps_state_row rows[] = {GPS_IMPORT_STATES(FROM, TO)};
    const enum gps_import_state was = node->import.state;
    gps_transition_check("import", rows, was, now);
    node->import.state = now;
    if (was == GPS_IMPORT_CACHED)
        leave_cache(node);
    if (was == GPS_IMPORT_ENDING)
        DL_DELETE(state.ending, node);
    else if (now == GPS_IMPORT_ENDING || now == GPS_IMPORT_GONE)
        leave_tables(node);
    if (now == GPS_IMPORT_CACHED)
        enter_cache(node);
    if (now == GPS_IMPORT_ENDING)
        DL_APPEND(state.ending, node);
    if (now == GPS_IMPORT_GONE)
        gps_slab_put(&state.slab, node);
}

static bool take(struct node *node, struct gps_import *import) {
    if (node) {
        *import = node->import;
        become(node, GPS_IMPORT_GONE);
    }
    return unlocked(node != NULL);
}

/* --- opens --- */

static bool is_anchored(void) {
    if (!state.by_pointer)
        HASH_ADD(by_pointer, state.by_pointer, import.pointer, sizeof(uint64_t), &state.anchor);
    if (!state.by_region)
        HASH_ADD(by_region, state.by_region, key, sizeof(struct key), &state.anchor);
    return state.by_pointer && state.by_region;
}

static bool insert(const struct gps_import *import) {
    struct node *node = is_anchored() ? gps_slab_get(&state.slab, sizeof(*node)) : NULL;
    if (!node)
        return false;
    *node = (struct node){.import = *import, .key = {import->region, import->context}};
    node->import.state = GPS_IMPORT_GONE;
    become(node, GPS_IMPORT_OPEN);
    HASH_ADD(by_pointer, state.by_pointer, import.pointer, sizeof(node->import.pointer), node);
    if (node->by_pointer.tbl)
        HASH_ADD(by_region, state.by_region, key, sizeof(node->key), node);
    const bool whole = node->by_region.tbl != NULL;
    if (!whole)
        become(node, GPS_IMPORT_GONE);
    return whole;
}

/* Counts one more open of what is open. */
static void count(struct node *node, enum gps_slot_via via, struct gps_import *import) {
    node->import.count++;
    node->import.opens++;
    node->import.by_rule += via == GPS_VIA_RULE;
    import->count = node->import.count;
    import->opens = node->import.opens;
    import->by_rule = node->import.by_rule;
    import->reopened = node->import.reopened;
    node->import.reopened = true;
}

static void count_first(struct gps_import *import, enum gps_slot_via via) {
    import->count = import->opens = 1;
    import->by_rule = via == GPS_VIA_RULE;
    import->reopened = false;
}

/* Opens what is cached again. */
static void revive(struct node *node, enum gps_slot_via via, uint32_t trace) {
    become(node, GPS_IMPORT_OPEN);
    count_first(&node->import, via);
    node->import.via = via;
    node->import.trace = trace;
    node->import.epoch = gps_registry_now();
}

/* *import may be a copy of what was open when this open began, and is closed by now: no file is
 * watched for it any more. */
static bool insert_first(struct gps_import *import, enum gps_slot_via via, bool stale) {
    count_first(import, via);
    import->slot_cached = false;
    import->record_file = import->owner_file = 0;
    import->stale = stale;
    return insert(import);
}

/* Removes what this open shows to be over. True: of another region the driver counts opens at this
 * address, so none of it is to be cached. */
static bool remove_previous(struct node *node, const struct gps_import *import,
                            struct gps_previous *previous) {
    const bool cached = is(node, GPS_IMPORT_CACHED);
    const bool dead = node->import.context != import->context;
    previous->over = dead || cached;
    previous->extra = !dead && cached;
    if (previous->over)
        previous->import = node->import;
    become(node, GPS_IMPORT_GONE);
    return !previous->over;
}

int gps_registry_open(struct gps_import *import, enum gps_slot_via via,
                      struct gps_previous *previous) {
    int status = GPS_OPEN_COUNTED;
    bool stale = false;
    gps_lock_take(&state.lock);
    struct node *node = at(import->pointer);
    previous->over = previous->extra = false;
    if (node && (node->import.context != import->context ||
                 !gps_id_equal(&node->import.region, &import->region))) {
        stale = remove_previous(node, import, previous);
        node = NULL;
    }
    if (is(node, GPS_IMPORT_CACHED)) {
        previous->extra = true;
        revive(node, via, import->trace);
        node->import.size = import->size;
        count_first(import, via);
    } else if (node && via == GPS_VIA_RULE && node->import.by_rule) {
        status = -EEXIST;
    } else if (node) {
        count(node, via, import);
    } else {
        status = insert_first(import, via, stale) ? GPS_OPEN_FIRST : -ENOMEM;
    }
    gps_lock_give(&state.lock);
    return status;
}

bool gps_registry_reopen(const struct gps_id *region, uint64_t context, struct gps_import *import) {
    gps_lock_take(&state.lock);
    struct node *node = if_open(of(region, context));
    if (node) {
        *import = node->import;
        count(node, GPS_VIA_PROGRAM, import);
    }
    return unlocked(node != NULL);
}

bool gps_registry_count_open(uint64_t pointer, const struct gps_id *region) {
    struct gps_import unused;
    gps_lock_take(&state.lock);
    struct node *node = if_open(at(pointer));
    const bool open = node && gps_id_equal(&node->import.region, region);
    if (open)
        count(node, GPS_VIA_PROGRAM, &unused);
    return unlocked(open);
}

bool gps_registry_set_slot(uint64_t pointer, unsigned slot) {
    gps_lock_take(&state.lock);
    struct node *node = at(pointer);
    const bool set = node && node->import.slot == NO_SLOT;
    if (set)
        node->import.slot = slot;
    return unlocked(set);
}

/* --- look-ups --- */

bool gps_registry_opened(const struct gps_id *region, uint64_t context, struct gps_import *import) {
    gps_lock_take(&state.lock);
    return give(if_open(of(region, context)), import);
}

bool gps_registry_only_counts(const struct gps_id *region, uint64_t context) {
    gps_lock_take(&state.lock);
    const struct node *node = if_open(of(region, context));
    return unlocked(node && node->import.reopened && node->import.slot != NO_SLOT);
}

bool gps_registry_import_at(uint64_t pointer, struct gps_import *import) {
    gps_lock_take(&state.lock);
    return give(if_open(at(pointer)), import);
}

bool gps_registry_opened_anywhere(const struct gps_id *region, struct gps_import *import) {
    gps_lock_take(&state.lock);
    const struct node *node = first();
    while (node && !(is(node, GPS_IMPORT_OPEN) && gps_id_equal(&node->import.region, region)))
        node = node->by_pointer.next;
    return give(node, import);
}

bool gps_registry_imports_name(const char *name) {
    bool found = false;
    gps_lock_take(&state.lock);
    for (struct node *node = first(); node && !found; node = node->by_pointer.next)
        found = node->import.by_rule && strcmp(node->import.name, name) == 0;
    return unlocked(found);
}

/* --- closes --- */

static enum gps_close close_kind(struct node *node, uint64_t pointer, enum gps_slot_via via,
                                 bool may_cache) {
    if (!node)
        return ending_at(pointer) ? GPS_CLOSE_DENIED : GPS_CLOSE_NONE;
    const struct gps_import *import = &node->import;
    if (via == GPS_VIA_PROGRAM && import->count == import->by_rule)
        return GPS_CLOSE_DENIED;
    return may_cache && import->count == 1 && import->record_file && !import->stale
               ? GPS_CLOSE_CACHED
               : GPS_CLOSE_ONE;
}

enum gps_close gps_registry_close(uint64_t pointer, enum gps_slot_via via, bool may_cache,
                                  struct gps_import *import) {
    gps_lock_take(&state.lock);
    struct node *node = at(pointer);
    const enum gps_close kind = close_kind(node, pointer, via, may_cache);
    if (kind == GPS_CLOSE_ONE || kind == GPS_CLOSE_CACHED) {
        node->import.count--;
        node->import.by_rule -= via == GPS_VIA_RULE;
        *import = node->import;
        if (kind == GPS_CLOSE_CACHED)
            become(node, GPS_IMPORT_CACHED);
        else if (node->import.count == 0)
            become(node, GPS_IMPORT_GONE);
    }
    gps_lock_give(&state.lock);
    return kind;
}

void gps_registry_unclose(const struct gps_import *import, enum gps_slot_via via) {
    struct gps_import again = *import;
    gps_lock_take(&state.lock);
    struct node *node = at(import->pointer);
    again.count = 1;
    again.by_rule = via == GPS_VIA_RULE;
    again.stale = true; /* its files may have changed meanwhile */
    if (node) {
        node->import.count++;
        node->import.by_rule += again.by_rule;
    } else {
        insert(&again);
    }
    gps_lock_give(&state.lock);
}

bool gps_registry_take_import(struct gps_import *import) {
    gps_lock_take(&state.lock);
    struct node *node = first();
    while (node && !is(node, GPS_IMPORT_OPEN))
        node = node->by_pointer.next;
    return take(node, import);
}

static bool take_of(uint64_t context, uint32_t epoch, struct gps_import *import) {
    gps_lock_take(&state.lock);
    struct node *node = first();
    while (node && (node->import.context != context || (int32_t)(node->import.epoch - epoch) >= 0))
        node = node->by_pointer.next;
    return take(node, import);
}

void gps_registry_purge_imports(uint64_t context, uint32_t epoch,
                                void (*fn)(void *arg, const struct gps_import *import), void *arg) {
    struct gps_import import;
    while (take_of(context, epoch, &import))
        fn(arg, &import);
}

/* --- what open_cache.h keeps --- */

void gps_registry_watch(uint64_t pointer, int record_file, int owner_file) {
    gps_lock_take(&state.lock);
    struct node *node = at(pointer);
    if (node) {
        node->import.record_file = record_file;
        node->import.owner_file = owner_file;
    }
    gps_lock_give(&state.lock);
}

bool gps_registry_outdate(int file) {
    bool cached = false;
    gps_lock_take(&state.lock);
    for (struct node *node = first(); node; node = node->by_pointer.next) {
        struct gps_import *import = &node->import;
        if (file < 0 || import->record_file == file || import->owner_file == file) {
            import->stale = true;
            cached |= is(node, GPS_IMPORT_CACHED);
        }
    }
    return unlocked(cached);
}

bool gps_registry_uncache(const struct gps_id *region, uint64_t context, uint32_t trace,
                          uint64_t *pointer) {
    gps_lock_take(&state.lock);
    struct node *node = of(region, context);
    const bool found = is(node, GPS_IMPORT_CACHED) && !node->import.stale;
    if (found) {
        revive(node, GPS_VIA_PROGRAM, trace);
        *pointer = node->import.pointer;
    }
    return unlocked(found);
}

bool gps_registry_take_cached(bool (*fits)(const struct gps_import *import, const void *arg),
                              const void *arg, struct gps_import *import) {
    gps_lock_take(&state.lock);
    struct node *node = state.cached;
    while (node && !fits(&node->import, arg))
        node = node->next;
    if (node)
        become(node, GPS_IMPORT_ENDING);
    return give(node, import);
}

void gps_registry_ended(uint64_t pointer) {
    gps_lock_take(&state.lock);
    struct node *node = ending_at(pointer);
    if (node)
        become(node, GPS_IMPORT_GONE);
    gps_lock_give(&state.lock);
}

bool gps_registry_expire(uint64_t context) {
    bool any = false;
    gps_lock_take(&state.lock);
    for (struct node *node = state.cached; node; node = node->next)
        if (node->import.context != context)
            any = node->import.stale = true;
    return unlocked(any);
}

bool gps_registry_any_ending(void) {
    gps_lock_take(&state.lock);
    return unlocked(state.ending != NULL);
}

static bool has_stale(const struct node *list) {
    while (list && !list->import.stale)
        list = list->next;
    return list != NULL;
}

bool gps_registry_any_stale(void) {
    gps_lock_take(&state.lock);
    return unlocked(has_stale(state.ending) || has_stale(state.cached));
}

struct gps_cached gps_registry_cached(void) {
    return (struct gps_cached){atomic_load_explicit(&state.count, memory_order_relaxed),
                               atomic_load_explicit(&state.bytes, memory_order_relaxed)};
}

bool gps_registry_caches(uint64_t pointer) {
    gps_lock_take(&state.lock);
    const struct node *node = at(pointer);
    return unlocked(node ? is(node, GPS_IMPORT_CACHED) : ending_at(pointer) != NULL);
}

/* Whether the address lies in the cached memory that begins at `pointer`. */
static bool is_in_cached(uint64_t pointer, uint64_t address) {
    gps_lock_take(&state.lock);
    const struct node *node = at(pointer);
    return unlocked(is(node, GPS_IMPORT_CACHED) && address - pointer < node->import.size);
}

static bool is_in_any_cached(uint64_t address) {
    gps_lock_take(&state.lock);
    const struct node *node = state.cached;
    while (node && address - node->import.pointer >= node->import.size)
        node = node->next;
    return unlocked(node != NULL);
}

/* Whether the program has an allocation there: what was cached in a context that another thread
 * destroys may be gone. */
static bool is_allocated(uint64_t pointer) {
    struct gps_alloc unused;
    return gps_registry_find(pointer, &unused);
}

bool gps_registry_closed(uint64_t address) {
    uint64_t base, size;
    if (address >= atomic_load_explicit(&state.highest, memory_order_relaxed) ||
        address < atomic_load_explicit(&state.lowest, memory_order_relaxed))
        return false;
    const int code = gps_ops->range(address, &base, &size);
    if (code == GPS_OK)
        return (is_in_cached(address, address) || is_in_cached(base, address)) &&
               !is_allocated(base);
    /* On a card a copy in another context was let through (H200, driver 580, 2026-11-23): this is
     * for a driver that tells the range in the import's own context alone. */
    return (code == GPS_INVALID_VALUE || code == GPS_NOT_FOUND) && is_in_any_cached(address);
}

static bool is_slot_wrong(const struct node *node) {
    return node->import.slot_cached != is(node, GPS_IMPORT_CACHED) && node->import.slot != NO_SLOT;
}

static struct node *open_with_wrong_slot(void) {
    struct node *node = first();
    while (node && !(is(node, GPS_IMPORT_OPEN) && is_slot_wrong(node)))
        node = node->by_pointer.next;
    return node;
}

bool gps_registry_correct_slot(uint64_t pointer, unsigned *slot, struct gps_slot *now) {
    gps_lock_take(&state.lock);
    struct node *node = pointer ? at(pointer) : open_with_wrong_slot();
    const bool wrong = node && is_slot_wrong(node);
    if (wrong) {
        const struct gps_import *import = &node->import;
        node->import.slot_cached = is(node, GPS_IMPORT_CACHED);
        *slot = import->slot;
        now->address = import->pointer;
        now->region = import->region;
        now->generation = import->generation;
        now->via = (uint32_t)import->via;
        now->state = import->slot_cached ? GPS_SLOT_CACHED : GPS_SLOT_OPEN;
    }
    return unlocked(wrong);
}

void gps_registry_reset_imports(void) {
    memset((void *)&state, 0, sizeof(state));
}
