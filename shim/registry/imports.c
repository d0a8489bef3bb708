/* imports.c - imports, by address and by (region, context). See registry.h. */
#include <errno.h>

#include "import_table.h"

struct import_table gps_imports;

static struct node *unless_cached(struct node *node) {
    return node && !node->cached ? node : NULL;
}

static bool is_anchored(void) {
    if (!gps_imports.by_pointer)
        HASH_ADD(by_pointer, gps_imports.by_pointer, import.pointer, sizeof(uint64_t),
                 &gps_imports.anchor);
    if (!gps_imports.by_region)
        HASH_ADD(by_region, gps_imports.by_region, key, sizeof(struct key), &gps_imports.anchor);
    return gps_imports.by_pointer && gps_imports.by_region;
}

static bool insert(const struct gps_import *import) {
    struct node *node = is_anchored() ? gps_slab_get(&gps_imports.slab, sizeof(*node)) : NULL;
    if (!node)
        return false;
    *node = (struct node){.import = *import, .key = {import->region, import->context}};
    HASH_ADD(by_pointer, gps_imports.by_pointer, import.pointer, sizeof(node->import.pointer),
             node);
    if (node->by_pointer.tbl)
        HASH_ADD(by_region, gps_imports.by_region, key, sizeof(node->key), node);
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
    gps_lock_take(&gps_imports.lock);
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
    gps_lock_give(&gps_imports.lock);
    return status;
}

bool gps_registry_reopen(const struct gps_id *region, uint64_t context, struct gps_import *import) {
    gps_lock_take(&gps_imports.lock);
    struct node *node = unless_cached(of(region, context));
    if (node) {
        *import = node->import;
        count(node, GPS_VIA_PROGRAM, import);
    }
    return unlocked(node != NULL);
}

bool gps_registry_count_open(uint64_t pointer, const struct gps_id *region) {
    struct gps_import unused;
    gps_lock_take(&gps_imports.lock);
    struct node *node = unless_cached(at(pointer));
    const bool open = node && gps_id_equal(&node->import.region, region);
    if (open)
        count(node, GPS_VIA_PROGRAM, &unused);
    return unlocked(open);
}

bool gps_registry_set_slot(uint64_t pointer, unsigned slot) {
    gps_lock_take(&gps_imports.lock);
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
    gps_lock_take(&gps_imports.lock);
    const struct node *node = unless_cached(of(region, context));
    const bool only = counts && node && node->import.reopened && node->import.slot != UINT32_MAX;
    if (counts)
        *counts = only;
    return give(only ? NULL : node, import);
}

bool gps_registry_import_at(uint64_t pointer, struct gps_import *import) {
    gps_lock_take(&gps_imports.lock);
    return give(unless_cached(at(pointer)), import);
}

enum gps_close gps_registry_close(uint64_t pointer, enum gps_slot_via via,
                                  struct gps_import *import) {
    gps_lock_take(&gps_imports.lock);
    struct node *node = at(pointer);
    const enum gps_close close =
        !node ? ending_at(pointer) ? GPS_CLOSE_RULES : GPS_CLOSE_NONE
        : via == GPS_VIA_PROGRAM && node->import.count == node->import.by_rule ? GPS_CLOSE_RULES
                                                                               : GPS_CLOSE_ONE;
    if (close == GPS_CLOSE_ONE) {
        node->import.count--;
        node->import.by_rule -= via == GPS_VIA_RULE;
        *import = node->import;
        if (node->import.count == 0)
            drop(node);
    }
    gps_lock_give(&gps_imports.lock);
    return close;
}

void gps_registry_unclose(const struct gps_import *import, enum gps_slot_via via) {
    struct gps_import first = *import;
    gps_lock_take(&gps_imports.lock);
    struct node *node = at(import->pointer);
    first.count = 1;
    first.by_rule = via == GPS_VIA_RULE;
    first.stale = true; /* its files may have changed meanwhile */
    if (node) {
        node->import.count++;
        node->import.by_rule += first.by_rule;
    } else {
        insert(&first);
    }
    gps_lock_give(&gps_imports.lock);
}

bool gps_registry_opened_anywhere(const struct gps_id *region, struct gps_import *import) {
    gps_lock_take(&gps_imports.lock);
    const struct node *node = first();
    while (node && (node->cached || !gps_id_equal(&node->import.region, region)))
        node = node->by_pointer.next;
    return give(node, import);
}

bool gps_registry_take_import(struct gps_import *import) {
    gps_lock_take(&gps_imports.lock);
    struct node *node = first();
    while (node && node->cached)
        node = node->by_pointer.next;
    return take(node, import);
}

bool gps_registry_imports_name(const char *name) {
    bool found = false;
    gps_lock_take(&gps_imports.lock);
    for (struct node *node = first(); node && !found; node = node->by_pointer.next)
        found = node->import.by_rule && strcmp(node->import.name, name) == 0;
    return unlocked(found);
}

bool gps_registry_take_dead(const struct gps_import *opened, struct gps_import *dead) {
    gps_lock_take(&gps_imports.lock);
    struct node *node = at(opened->pointer);
    return take(node && node->import.context != opened->context ? node : NULL, dead);
}

static bool take_of(uint64_t context, uint32_t epoch, struct gps_import *import) {
    gps_lock_take(&gps_imports.lock);
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

void gps_registry_reset_imports(void) {
    memset((void *)&gps_imports, 0, sizeof(gps_imports));
}
