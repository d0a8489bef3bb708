/* imports.c - imports, by address and by (region, context). See registry.h. */
#include <errno.h>
#include <pthread.h>

#define NDEBUG /* the lists assert, which prints and ends the program */
#include <utlist.h>

#include "hash_table.h"
#include "registry.h"

struct key {
    struct gps_id region;
    uint64_t context;
};

struct node {
    struct gps_import import;
    struct key key;
    UT_hash_handle by_pointer, by_region;
    bool cached;              /* then its count is 0 */
    struct node *prev, *next; /* in the list of cached ones, oldest first */
};

static struct {
    pthread_mutex_t lock;
    struct node *by_pointer, *by_region, *cached;
    struct node anchor; /* the first entry of both, as in allocations.c */
    struct gps_cached sum;
    struct gps_slab slab;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The end of a look-up. */
static bool unlocked(bool answer) {
    pthread_mutex_unlock(&table.lock);
    return answer;
}

static struct node *at(uint64_t pointer) {
    struct node *node;
    HASH_FIND(by_pointer, table.by_pointer, &pointer, sizeof(pointer), node);
    return node == &table.anchor ? NULL : node;
}

static struct node *first(void) {
    return table.by_pointer ? table.by_pointer->by_pointer.next : NULL;
}

static struct node *unless_cached(struct node *node) {
    return node && !node->cached ? node : NULL;
}

static void cache(struct node *node) {
    DL_APPEND(table.cached, node);
    table.sum.count++;
    table.sum.bytes += node->import.size;
    node->cached = true;
}

static void uncache(struct node *node) {
    DL_DELETE(table.cached, node);
    table.sum.count--;
    table.sum.bytes -= node->import.size;
    node->cached = false;
}

static void drop(struct node *node) {
    if (node->cached)
        uncache(node);
    if (node->by_pointer.tbl)
        HASH_DELETE(by_pointer, table.by_pointer, node);
    if (node->by_region.tbl)
        HASH_DELETE(by_region, table.by_region, node);
    gps_slab_put(&table.slab, node);
}

static bool is_anchored(void) {
    if (!table.by_pointer)
        HASH_ADD(by_pointer, table.by_pointer, import.pointer, sizeof(uint64_t), &table.anchor);
    if (!table.by_region)
        HASH_ADD(by_region, table.by_region, key, sizeof(struct key), &table.anchor);
    return table.by_pointer && table.by_region;
}

static bool insert(const struct gps_import *import) {
    struct node *node = is_anchored() ? gps_slab_get(&table.slab, sizeof(*node)) : NULL;
    if (!node)
        return false;
    *node = (struct node){.import = *import, .key = {import->region, import->context}};
    HASH_ADD(by_pointer, table.by_pointer, import.pointer, sizeof(node->import.pointer), node);
    if (node->by_pointer.tbl)
        HASH_ADD(by_region, table.by_region, key, sizeof(node->key), node);
    const bool whole = node->by_region.tbl != NULL;
    if (!whole)
        drop(node);
    return whole;
}

/* With the lock: one more open of what is open, as it is now. */
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

/* A cached one is open again, for the first time. */
static void revive(struct node *node, enum gps_slot_via via, uint32_t trace) {
    uncache(node);
    node->import.count = node->import.opens = 1;
    node->import.by_rule = via == GPS_VIA_RULE;
    node->import.via = via;
    node->import.reopened = false;
    node->import.trace = trace;
    node->import.epoch = gps_registry_now();
}

static void count_first(struct gps_import *import, enum gps_slot_via via) {
    import->count = import->opens = 1;
    import->by_rule = via == GPS_VIA_RULE;
    import->reopened = false;
}

/* What was open when this open began may be closed by now: no file is watched for it any more.
 * `beside`: the driver counts opens of another region at this address, so none of it is cached. */
static bool insert_first(struct gps_import *import, enum gps_slot_via via, bool beside) {
    count_first(import, via);
    import->told = 0;
    import->record_file = import->owner_file = 0;
    import->stale = beside;
    return insert(import);
}

int gps_registry_open(struct gps_import *import, enum gps_slot_via via) {
    int status = 0;
    pthread_mutex_lock(&table.lock);
    struct node *node = at(import->pointer);
    const bool beside = node && !gps_id_equal(&node->import.region, &import->region);
    if (beside) { /* its close failed, or its exporter freed it: the address is another region's */
        drop(node);
        node = NULL;
    }
    import->revived = node && node->cached;
    if (import->revived) {
        revive(node, via, import->trace);
        node->import.size = import->size;
        count_first(import, via);
    } else if (node && via == GPS_VIA_RULE && node->import.by_rule) {
        status = -EEXIST;
    } else if (node) {
        count(node, via, import);
    } else {
        status = insert_first(import, via, beside) ? 0 : -ENOMEM;
    }
    pthread_mutex_unlock(&table.lock);
    return status;
}

static struct node *of(const struct gps_id *region, uint64_t context) {
    const struct key key = {*region, context};
    struct node *node;
    HASH_FIND(by_region, table.by_region, &key, sizeof(key), node);
    return node == &table.anchor ? NULL : node;
}

bool gps_registry_reopen(const struct gps_id *region, uint64_t context, struct gps_import *import) {
    pthread_mutex_lock(&table.lock);
    struct node *node = unless_cached(of(region, context));
    if (node) {
        *import = node->import;
        count(node, GPS_VIA_PROGRAM, import);
    }
    return unlocked(node != NULL);
}

bool gps_registry_count_open(uint64_t pointer, const struct gps_id *region) {
    struct gps_import unused;
    pthread_mutex_lock(&table.lock);
    struct node *node = unless_cached(at(pointer));
    const bool open = node && gps_id_equal(&node->import.region, region);
    if (open)
        count(node, GPS_VIA_PROGRAM, &unused);
    return unlocked(open);
}

bool gps_registry_set_slot(uint64_t pointer, unsigned slot) {
    pthread_mutex_lock(&table.lock);
    struct node *node = at(pointer);
    const bool set = node && node->import.slot == UINT32_MAX;
    if (set)
        node->import.slot = slot;
    return unlocked(set);
}

/* The end of a look-up: copies what was found, and gives the lock back. */
static bool give(const struct node *node, struct gps_import *import) {
    if (node)
        *import = node->import;
    return unlocked(node != NULL);
}

bool gps_registry_opened(const struct gps_id *region, uint64_t context, struct gps_import *import,
                         bool *counts) {
    pthread_mutex_lock(&table.lock);
    const struct node *node = unless_cached(of(region, context));
    const bool only = counts && node && node->import.reopened && node->import.slot != UINT32_MAX;
    if (counts)
        *counts = only;
    return give(only ? NULL : node, import);
}

bool gps_registry_import_at(uint64_t pointer, struct gps_import *import) {
    pthread_mutex_lock(&table.lock);
    return give(unless_cached(at(pointer)), import);
}

enum gps_close gps_registry_close(uint64_t pointer, enum gps_slot_via via,
                                  struct gps_import *import) {
    pthread_mutex_lock(&table.lock);
    struct node *node = at(pointer);
    const enum gps_close close =
        !node                                                                  ? GPS_CLOSE_NONE
        : via == GPS_VIA_PROGRAM && node->import.count == node->import.by_rule ? GPS_CLOSE_RULES
                                                                               : GPS_CLOSE_ONE;
    if (close == GPS_CLOSE_ONE) {
        node->import.count--;
        node->import.by_rule -= via == GPS_VIA_RULE;
        *import = node->import;
        if (node->import.count == 0)
            drop(node);
    }
    pthread_mutex_unlock(&table.lock);
    return close;
}

void gps_registry_unclose(const struct gps_import *import, enum gps_slot_via via) {
    struct gps_import first = *import;
    pthread_mutex_lock(&table.lock);
    struct node *node = at(import->pointer);
    first.count = 1;
    first.by_rule = via == GPS_VIA_RULE;
    if (node) {
        node->import.count++;
        node->import.by_rule += first.by_rule;
    } else {
        insert(&first);
    }
    pthread_mutex_unlock(&table.lock);
}

bool gps_registry_opened_anywhere(const struct gps_id *region, struct gps_import *import) {
    pthread_mutex_lock(&table.lock);
    const struct node *node = first();
    while (node && (node->cached || !gps_id_equal(&node->import.region, region)))
        node = node->by_pointer.next;
    return give(node, import);
}

static bool take(struct node *node, struct gps_import *import) {
    if (node) {
        *import = node->import;
        drop(node);
    }
    return unlocked(node != NULL);
}

bool gps_registry_take_import(struct gps_import *import) {
    pthread_mutex_lock(&table.lock);
    struct node *node = first();
    while (node && node->cached)
        node = node->by_pointer.next;
    return take(node, import);
}

bool gps_registry_imports_name(const char *name) {
    bool found = false;
    pthread_mutex_lock(&table.lock);
    for (struct node *node = first(); node && !found; node = node->by_pointer.next)
        found = node->import.by_rule && strcmp(node->import.name, name) == 0;
    return unlocked(found);
}

static bool take_of(uint64_t context, uint32_t epoch, struct gps_import *import) {
    pthread_mutex_lock(&table.lock);
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

/* --- cached ones --- */

void gps_registry_watch(uint64_t pointer, int record_file, int owner_file) {
    pthread_mutex_lock(&table.lock);
    struct node *node = at(pointer);
    if (node) {
        node->import.told = GPS_SLOT_OPEN;
        node->import.record_file = record_file;
        node->import.owner_file = owner_file;
    }
    pthread_mutex_unlock(&table.lock);
}

void gps_registry_outdate(int file) {
    pthread_mutex_lock(&table.lock);
    for (struct node *node = first(); node; node = node->by_pointer.next) {
        struct gps_import *import = &node->import;
        if (file < 0 || import->record_file == file || import->owner_file == file)
            import->stale = true;
    }
    pthread_mutex_unlock(&table.lock);
}

bool gps_registry_cache(uint64_t pointer, struct gps_import *import) {
    pthread_mutex_lock(&table.lock);
    struct node *node = at(pointer);
    const bool cached = node && node->import.count == 1 && !node->import.by_rule &&
                        node->import.record_file && !node->import.stale;
    if (cached) {
        node->import.count = 0;
        *import = node->import;
        cache(node);
    }
    return unlocked(cached);
}

bool gps_registry_uncache(const struct gps_id *region, uint64_t context, uint32_t trace,
                          uint64_t *pointer) {
    pthread_mutex_lock(&table.lock);
    struct node *node = of(region, context);
    const bool found = node && node->cached && !node->import.stale;
    if (found) {
        revive(node, GPS_VIA_PROGRAM, trace);
        *pointer = node->import.pointer;
    }
    return unlocked(found);
}

bool gps_registry_take_cached(bool (*fits)(const struct gps_import *import, const void *arg),
                              const void *arg, struct gps_import *import) {
    pthread_mutex_lock(&table.lock);
    struct node *node = table.cached;
    while (node && !fits(&node->import, arg))
        node = node->next;
    return take(node, import);
}

struct gps_cached gps_registry_cached(void) {
    pthread_mutex_lock(&table.lock);
    const struct gps_cached sum = table.sum;
    pthread_mutex_unlock(&table.lock);
    return sum;
}

bool gps_registry_caches(uint64_t pointer) {
    pthread_mutex_lock(&table.lock);
    const struct node *node = at(pointer);
    const bool cached = node && node->cached;
    return unlocked(cached);
}

bool gps_registry_untold(uint64_t *pointer) {
    pthread_mutex_lock(&table.lock);
    const struct node *node = first();
    while (node && (node->cached || node->import.told != GPS_SLOT_CACHED))
        node = node->by_pointer.next;
    if (node)
        *pointer = node->import.pointer;
    return unlocked(node != NULL);
}

bool gps_registry_tell(uint64_t pointer, unsigned *slot, struct gps_slot *now) {
    pthread_mutex_lock(&table.lock);
    struct node *node = at(pointer);
    const enum gps_slot_state state = node && node->cached ? GPS_SLOT_CACHED : GPS_SLOT_OPEN;
    const bool news = node && node->import.told && node->import.told != state;
    if (news) {
        node->import.told = state;
        *slot = node->import.slot;
        now->region = node->import.region;
        now->generation = node->import.generation;
        now->via = (uint32_t)node->import.via;
        now->state = (uint32_t)state;
    }
    return unlocked(news);
}

void gps_registry_reset_imports(void) {
    memset((void *)&table, 0, sizeof(table));
}
