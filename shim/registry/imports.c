/* imports.c - imports, by address, by (region, context), and by state. See registry.h. */
#include <errno.h>
#include <string.h>

#include "driver/driver_ops.h"
#include "hash_table.h"
#include "registry.h"
#include "util/forgotten.h"
#include "util/lock.h"

#define NO_SLOT UINT32_MAX /* references.h */
enum { MARKS = 256 };

struct node {
    struct gps_import import;
    struct gps_entry by_pointer, by_region; /* of open and cached imports */
    struct node *prev, *next;               /* in the list of its state */
};

/* The oldest first. */
struct list {
    struct node *first, *last;
};

static struct {
    GPS_LOCK(GPS_RANK_IMPORTS) lock;
    struct gps_table by_pointer, by_region;
    struct list lists[GPS_IMPORT_ENDING + 1]; /* by state */
    /* Sums of the cached imports, also read without the lock. */
    _Atomic unsigned count;
    _Atomic uint64_t bytes;
    /* Keys of imports that are open twice, read without the lock; a newer one may replace an older.
     * They are written with the lock. */
    _Atomic uint64_t twice[MARKS];
    struct gps_slab slab;
} state;
GPS_FORGOTTEN(state);

/* --- with the lock --- */

/* Copies the import that was found. */
static bool import_give(const struct node *node, struct gps_import *import) {
    if (node)
        *import = node->import;
    return node;
}

static inline struct node *import_at(uint64_t pointer) {
    return GPS_ENTRY_OF(struct node, by_pointer, gps_table_find(&state.by_pointer, pointer));
}

static inline uint64_t region_key(const struct gps_id *region, uint64_t context) {
    uint64_t word; /* the id is a hash */
    memcpy(&word, region->bytes, sizeof(word));
    return word ^ context;
}

static inline struct node *of(const struct gps_id *region, uint64_t context) {
    struct gps_entry *entry = gps_table_find(&state.by_region, region_key(region, context));
    struct node *node;
    while ((node = GPS_ENTRY_OF(struct node, by_region, entry)) &&
           !(node->import.context == context && gps_id_equal(&node->import.region, region)))
        entry = gps_entry_find(entry);
    return node;
}

static inline _Atomic uint64_t *import_mark(uint64_t key) {
    return &state.twice[key % MARKS];
}

static void import_unmark(const struct node *node) {
    const uint64_t key = node->by_region.key;
    if (atomic_load_explicit(import_mark(key), memory_order_relaxed) == key)
        atomic_store_explicit(import_mark(key), 0, memory_order_relaxed);
}

static struct node *import_first(unsigned what) {
    return state.lists[what].first;
}

/* The oldest import in this state for which the condition holds, in which it is `one`; or NULL. */
#define FIND(what, condition)                                                                      \
    ({                                                                                             \
        struct node *one = import_first(what);                                                     \
        while (one && !(condition))                                                                \
            one = one->next;                                                                       \
        one;                                                                                       \
    })

static bool is_ending_at(uint64_t pointer) {
    return FIND(GPS_IMPORT_ENDING, one->import.pointer == pointer) != NULL;
}

static inline bool is(const struct node *node, enum gps_import_state what) {
    return node && node->import.state == what;
}

static struct node *if_open(struct node *node) {
    return is(node, GPS_IMPORT_OPEN) ? node : NULL;
}

static inline void enter_list(struct list *list, struct node *node) {
    node->prev = list->last;
    node->next = NULL;
    *(list->last ? &list->last->next : &list->first) = node;
    list->last = node;
}

static inline void leave_list(struct list *list, const struct node *node) {
    *(node->prev ? &node->prev->next : &list->first) = node->next;
    *(node->next ? &node->next->prev : &list->last) = node->prev;
}

/* False: there is no memory for them. */
static bool enter_tables(struct node *node) {
    const struct gps_import *import = &node->import;
    const uint64_t key = region_key(&import->region, import->context);
    if (!gps_table_add(&state.by_pointer, &node->by_pointer, import->pointer))
        return false;
    if (gps_table_add(&state.by_region, &node->by_region, key))
        return true;
    gps_table_remove(&state.by_pointer, &node->by_pointer);
    return false;
}

static inline void leave_tables(struct node *node) {
    gps_table_remove(&state.by_pointer, &node->by_pointer);
    gps_table_remove(&state.by_region, &node->by_region);
}

#define FROM(state, next) GPS_STATE_ROW(GPS_IMPORT_##state, next),
#define TO(state)         GPS_TO(GPS_IMPORT_##state)

/* A node that has become GONE must not be used any more. */
static inline void import_become(struct node *node, enum gps_import_state now) {
    static const struct gps_state_row rows[] = {GPS_IMPORT_STATES(FROM, TO)};
    const enum gps_import_state was = node->import.state;
    gps_transition_check("import", rows, was, now);
    node->import.state = now;
    if (was != GPS_IMPORT_GONE)
        leave_list(&state.lists[was], node);
    if (was == GPS_IMPORT_OPEN && node->import.opens.repeated)
        import_unmark(node);
    if (was == GPS_IMPORT_CACHED) {
        state.count--;
        state.bytes -= node->import.size;
    }
    if (was != GPS_IMPORT_ENDING && (now == GPS_IMPORT_ENDING || now == GPS_IMPORT_GONE))
        leave_tables(node);
    if (now == GPS_IMPORT_CACHED) {
        state.count++;
        state.bytes += node->import.size;
    }
    if (now == GPS_IMPORT_GONE)
        gps_slab_put(&state.slab, node);
    else
        enter_list(&state.lists[now], node);
}

static bool import_take(struct node *node, struct gps_import *import) {
    if (node) {
        *import = node->import;
        import_become(node, GPS_IMPORT_GONE);
    }
    return node != NULL;
}

/* --- opens --- */

static bool import_insert(const struct gps_import *import) {
    struct node *node = gps_slab_get(&state.slab, sizeof(*node));
    if (!node)
        return false;
    node->import = *import;
    node->import.state = GPS_IMPORT_GONE;
    if (!enter_tables(node)) {
        gps_slab_put(&state.slab, node);
        return false;
    }
    import_become(node, GPS_IMPORT_OPEN);
    return true;
}

/* Whether one more open only counts: there is nothing to publish or to report. Not for tokens,
 * whose opens are counted before. */
static inline bool is_open_twice(const struct node *node) {
    return node->import.opens.repeated && node->import.slot != NO_SLOT && !node->import.vmm;
}

/* Counts one more open of an open import. Returns the counts, with `repeated` as it was before. */
static struct gps_import_opens import_count_open(struct node *node, enum gps_slot_via via) {
    struct gps_import_opens *opens = &node->import.opens;
    opens->open++;
    opens->all++;
    opens->by_rule += via == GPS_VIA_RULE;
    const struct gps_import_opens now = *opens;
    opens->repeated = true;
    if (is_open_twice(node))
        atomic_store(import_mark(node->by_region.key), node->by_region.key);
    return now;
}

static struct gps_import_opens first_open(enum gps_slot_via via) {
    return (struct gps_import_opens){.open = 1, .all = 1, .by_rule = via == GPS_VIA_RULE};
}

/* Opens a cached import again. */
static void revive(struct node *node, enum gps_slot_via via, uint32_t trace) {
    import_become(node, GPS_IMPORT_OPEN);
    node->import.opens = first_open(via);
    node->import.via = via;
    node->import.trace = trace;
    node->import.era = gps_registry_era();
}

/* *import may be a copy of an import that was open when this open began, and is closed by now: no
 * file is watched for it any more. */
static bool insert_first(struct gps_import *import, enum gps_slot_via via) {
    import->opens = first_open(via);
    import->cache = (struct gps_import_cache){0};
    return import_insert(import);
}

/* Removes an import that this open shows to be over. The driver counts opens by address: if it
 * opens another region where one is open, that is one more open of the first. An old handle, of
 * which nothing is known, opens the memory that its exporter has there now: once that region is
 * known, all opens are of it. False: there is no such import. */
static bool remove_over(struct node *node, const struct gps_import *import,
                        struct gps_previous *previous) {
    const bool dead = node && node->import.context != import->context;
    const bool other = node && !gps_id_equal(&node->import.region, &import->region);
    const bool unknown = other && !node->import.size && import->size;
    previous->over = dead || unknown || (other && is(node, GPS_IMPORT_CACHED));
    previous->extra = !dead && is(node, GPS_IMPORT_CACHED);
    if (previous->over) {
        previous->import = node->import;
        import_become(node, GPS_IMPORT_GONE);
    }
    return previous->over;
}

/* Whether the earlier import's opens go on as this one's: a program closes as often as it opens. */
static bool import_goes_on(const struct gps_previous *previous, const struct gps_import *import) {
    return previous->over && previous->import.context == import->context &&
           previous->import.state == GPS_IMPORT_OPEN;
}

static void add_opens(struct node *node, const struct gps_import *before) {
    node->import.opens.open += before->opens.open;
    node->import.opens.all += before->opens.all;
    node->import.opens.repeated = true;
}

int gps_registry_open(struct gps_import *import, enum gps_slot_via via,
                      struct gps_previous *previous) {
    int status = GPS_OPEN_COUNTED;
    GPS_LOCKED(&state.lock);
    struct node *node = import_at(import->pointer);
    if (remove_over(node, import, previous))
        node = NULL;
    if (is(node, GPS_IMPORT_CACHED)) {
        revive(node, via, import->trace);
        node->import.size = import->size;
        import->opens = node->import.opens;
    } else if (node && via == GPS_VIA_RULE && node->import.opens.by_rule) {
        status = -EEXIST;
    } else if (node) {
        import->opens = import_count_open(node, via);
    } else {
        status = insert_first(import, via) ? GPS_OPEN_FIRST : -ENOMEM;
        if (status == GPS_OPEN_FIRST && import_goes_on(previous, import))
            add_opens(import_at(import->pointer), &previous->import);
    }
    return status;
}

bool gps_registry_opened(const struct gps_id *region, uint64_t context, bool counts,
                         struct gps_import *import) {
    GPS_LOCKED(&state.lock);
    struct node *node = if_open(of(region, context));
    if (import_give(node, import) && counts)
        import->opens = import_count_open(node, GPS_VIA_PROGRAM);
    return node != NULL;
}

bool gps_registry_is_open_twice(const struct gps_id *region, uint64_t context) {
    const uint64_t key = region_key(region, context);
    return atomic_load_explicit(import_mark(key), memory_order_relaxed) == key;
}

bool gps_registry_count_again(const struct gps_id *region, uint64_t context, uint64_t pointer) {
    GPS_LOCKED(&state.lock);
    struct node *node = if_open(import_at(pointer));
    if (!node || !is_open_twice(node) || node->import.context != context ||
        !gps_id_equal(&node->import.region, region))
        return false;
    node->import.opens.open++;
    node->import.opens.all++;
    return true;
}

bool gps_registry_set_slot(uint64_t pointer, unsigned slot) {
    GPS_LOCKED(&state.lock);
    struct node *node = import_at(pointer);
    const bool set = node && node->import.slot == NO_SLOT;
    if (set)
        node->import.slot = slot;
    return set;
}

/* --- look-ups --- */

bool gps_registry_import_at(uint64_t pointer, struct gps_import *import) {
    GPS_LOCKED(&state.lock);
    return import_give(if_open(import_at(pointer)), import);
}

bool gps_registry_import_around(uint64_t address, struct gps_import *import) {
    GPS_LOCKED(&state.lock);
    return import_give(FIND(GPS_IMPORT_OPEN, address - one->import.pointer < one->import.size),
                       import);
}

bool gps_registry_opened_anywhere(const struct gps_id *region, struct gps_import *import) {
    GPS_LOCKED(&state.lock);
    return import_give(FIND(GPS_IMPORT_OPEN, gps_id_equal(&one->import.region, region)), import);
}

unsigned gps_registry_imports_of(const struct gps_owner *exporter, struct gps_import *found,
                                 unsigned max) {
    unsigned count = 0;
    GPS_LOCKED(&state.lock);
    for (const struct node *node = import_first(GPS_IMPORT_OPEN); node && count < max;
         node = node->next)
        if (gps_owner_equal(&node->import.exporter.owner, exporter))
            found[count++] = node->import;
    return count;
}

bool gps_registry_imports_name(const char *name) {
    GPS_LOCKED(&state.lock);
    return FIND(GPS_IMPORT_OPEN,
                one->import.opens.by_rule && strcmp(one->import.name, name) == 0) != NULL;
}

/* --- closes --- */

static enum gps_close close_kind(struct node *node, uint64_t pointer, enum gps_slot_via via,
                                 bool may_cache) {
    if (!node)
        return is_ending_at(pointer) ? GPS_CLOSE_DENIED : GPS_CLOSE_NONE;
    const struct gps_import *import = &node->import;
    if (via == GPS_VIA_PROGRAM && import->opens.open == import->opens.by_rule)
        return GPS_CLOSE_DENIED;
    return may_cache && import->opens.open == 1 && import->cache.record_file && !import->cache.stale
               ? GPS_CLOSE_CACHED
               : GPS_CLOSE_ONE;
}

enum gps_close gps_registry_close(uint64_t pointer, enum gps_slot_via via, bool may_cache,
                                  struct gps_import *import) {
    GPS_LOCKED(&state.lock);
    struct node *node = import_at(pointer);
    const enum gps_close kind = close_kind(node, pointer, via, may_cache);
    if (kind == GPS_CLOSE_ONE || kind == GPS_CLOSE_CACHED) {
        node->import.opens.open--;
        node->import.opens.by_rule -= via == GPS_VIA_RULE;
        *import = node->import;
        if (kind == GPS_CLOSE_CACHED)
            import_become(node, GPS_IMPORT_CACHED);
        else if (node->import.opens.open == 0)
            import_become(node, GPS_IMPORT_GONE);
    }
    return kind;
}

void gps_registry_unclose(const struct gps_import *import, enum gps_slot_via via) {
    struct gps_import again = *import;
    GPS_LOCKED(&state.lock);
    struct node *node = import_at(import->pointer);
    again.opens.open = 1;
    again.opens.by_rule = via == GPS_VIA_RULE;
    again.cache.stale = true; /* its files may have changed meanwhile */
    if (node) {
        node->import.opens.open++;
        node->import.opens.by_rule += again.opens.by_rule;
    } else {
        import_insert(&again);
    }
}

bool gps_registry_take_import(struct gps_import *import) {
    GPS_LOCKED(&state.lock);
    return import_take(import_first(GPS_IMPORT_OPEN), import);
}

bool gps_registry_driver_import(struct gps_import *import) {
    struct node *node = NULL;
    GPS_LOCKED(&state.lock);
    for (unsigned what = GPS_IMPORT_OPEN; what <= GPS_IMPORT_ENDING && !node; what++)
        node = FIND(what, !one->import.vmm);
    return import_give(node, import);
}

bool gps_registry_take_import_of(uint64_t context, uint32_t era, struct gps_import *import) {
    struct node *node = NULL;
    GPS_LOCKED(&state.lock);
    for (unsigned what = GPS_IMPORT_OPEN; what <= GPS_IMPORT_ENDING && !node; what++)
        node = FIND(what, one->import.context == context && !one->import.cache.taken &&
                              (int32_t)(one->import.era - era) < 0);
    return import_take(node, import);
}

/* --- imports that open_cache.h keeps --- */

bool gps_registry_watch(const struct gps_import *import, int record_file, int owner_file) {
    GPS_LOCKED(&state.lock);
    struct node *node = if_open(import_at(import->pointer));
    const bool open = node && gps_id_equal(&node->import.region, &import->region);
    if (open) {
        node->import.cache.record_file = record_file;
        node->import.cache.owner_file = owner_file;
    }
    return open;
}

/* Makes one state's imports with a changed file (-1: any) stale, but not those of this context. */
static bool expire(enum gps_import_state what, int file, uint64_t context) {
    bool any = false;
    for (struct node *node = import_first(what), *next; node; node = next) {
        struct gps_import *import = &node->import;
        next = node->next;
        if (import->context == context ||
            (file >= 0 && import->cache.record_file != file && import->cache.owner_file != file))
            continue;
        import->cache.stale = any = true;
        if (what == GPS_IMPORT_CACHED)
            import_become(node, GPS_IMPORT_ENDING);
    }
    return any;
}

bool gps_registry_outdate(int file) {
    GPS_LOCKED(&state.lock);
    expire(GPS_IMPORT_OPEN, file, 0);
    return expire(GPS_IMPORT_CACHED, file, 0);
}

bool gps_registry_expire(uint64_t context) {
    GPS_LOCKED(&state.lock);
    return expire(GPS_IMPORT_CACHED, -1, context);
}

bool gps_registry_uncache(const struct gps_id *region, uint64_t context, uint32_t trace,
                          uint64_t *pointer) {
    GPS_LOCKED(&state.lock);
    struct node *node = of(region, context);
    const bool found = is(node, GPS_IMPORT_CACHED);
    if (found) {
        revive(node, GPS_VIA_PROGRAM, trace);
        *pointer = node->import.pointer;
    }
    return found;
}

bool gps_registry_take_ending(uint64_t context, struct gps_import *import) {
    GPS_LOCKED(&state.lock);
    struct node *node = context ? FIND(GPS_IMPORT_CACHED, one->import.context == context)
                                : FIND(GPS_IMPORT_ENDING, !one->import.cache.taken);
    if (is(node, GPS_IMPORT_CACHED))
        import_become(node, GPS_IMPORT_ENDING);
    if (node)
        node->import.cache.taken = true;
    return import_give(node, import);
}

void gps_registry_ended(uint64_t pointer) {
    GPS_LOCKED(&state.lock);
    struct node *node =
        FIND(GPS_IMPORT_ENDING, one->import.cache.taken && one->import.pointer == pointer);
    if (node)
        import_become(node, GPS_IMPORT_GONE);
}

bool gps_registry_any_ending(const struct gps_id *region) {
    GPS_LOCKED(&state.lock);
    return FIND(GPS_IMPORT_ENDING,
                one->import.cache.stale || (region && gps_id_equal(&one->import.region, region))) !=
           NULL;
}

struct gps_cached gps_registry_cached(void) {
    return (struct gps_cached){atomic_load_explicit(&state.count, memory_order_relaxed),
                               atomic_load_explicit(&state.bytes, memory_order_relaxed)};
}

/* --- memory that is mapped, but not open any more --- */

bool gps_registry_caches(uint64_t pointer) {
    GPS_LOCKED(&state.lock);
    const struct node *node = import_at(pointer);
    return node ? is(node, GPS_IMPORT_CACHED) : is_ending_at(pointer);
}

/* --- slots --- */

static bool is_slot_wrong(const struct node *node) {
    return node->import.cache.in_slot != is(node, GPS_IMPORT_CACHED) &&
           node->import.slot != NO_SLOT;
}

bool gps_registry_correct_slot(uint64_t pointer, unsigned *slot, struct gps_slot *now) {
    GPS_LOCKED(&state.lock);
    struct node *node = pointer ? import_at(pointer) : FIND(GPS_IMPORT_OPEN, is_slot_wrong(one));
    const bool wrong = node && is_slot_wrong(node);
    if (wrong) {
        const struct gps_import *import = &node->import;
        node->import.cache.in_slot = is(node, GPS_IMPORT_CACHED);
        *slot = import->slot;
        now->address = import->pointer;
        now->region = import->region;
        now->generation = import->generation;
        now->via = (uint32_t)import->via;
        now->state = import->cache.in_slot ? GPS_SLOT_CACHED : GPS_SLOT_OPEN;
    }
    return wrong;
}
