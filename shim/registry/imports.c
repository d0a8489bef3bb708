/* imports.c - imports, by address and by (region, context). See registry.h. */
#include <errno.h>
#include <pthread.h>

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
};

static struct {
    pthread_mutex_t lock;
    struct node *by_pointer, *by_region;
    struct gps_slab slab;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .slab.size = sizeof(struct node)};

static struct node *at(uint64_t pointer) {
    struct node *node;
    HASH_FIND(by_pointer, table.by_pointer, &pointer, sizeof(pointer), node);
    return node;
}

static void drop(struct node *node) {
    HASH_DELETE(by_pointer, table.by_pointer, node);
    if (node->by_region.tbl)
        HASH_DELETE(by_region, table.by_region, node);
    gps_slab_put(&table.slab, node);
}

static bool insert(const struct gps_import *import) {
    struct node *node = gps_slab_get(&table.slab);
    if (!node)
        return false;
    *node = (struct node){.import = *import, .key = {import->region, import->context}};
    HASH_ADD(by_pointer, table.by_pointer, import.pointer, sizeof(node->import.pointer), node);
    if (!node->by_pointer.tbl) {
        gps_slab_put(&table.slab, node);
        return false;
    }
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

int gps_registry_open(struct gps_import *import, enum gps_slot_via via) {
    int status = 0;
    pthread_mutex_lock(&table.lock);
    struct node *node = at(import->pointer);
    if (node && !gps_id_equal(&node->import.region, &import->region)) {
        drop(node); /* its close failed, and the driver has given the address to another region */
        node = NULL;
    }
    if (node && via == GPS_VIA_RULE && node->import.by_rule) {
        status = -EEXIST;
    } else if (node) {
        count(node, via, import);
    } else {
        import->count = import->opens = 1;
        import->by_rule = via == GPS_VIA_RULE;
        import->reopened = false;
        status = insert(import) ? 0 : -ENOMEM;
    }
    pthread_mutex_unlock(&table.lock);
    return status;
}

static struct node *of(const struct gps_id *region, uint64_t context) {
    const struct key key = {*region, context};
    struct node *node;
    HASH_FIND(by_region, table.by_region, &key, sizeof(key), node);
    return node;
}

bool gps_registry_reopen(const struct gps_id *region, uint64_t context, struct gps_import *import) {
    pthread_mutex_lock(&table.lock);
    struct node *node = of(region, context);
    if (node) {
        *import = node->import;
        count(node, GPS_VIA_PROGRAM, import);
    }
    pthread_mutex_unlock(&table.lock);
    return node != NULL;
}

bool gps_registry_set_slot(uint64_t pointer, unsigned slot) {
    pthread_mutex_lock(&table.lock);
    struct node *node = at(pointer);
    const bool set = node && node->import.slot == UINT32_MAX;
    if (set)
        node->import.slot = slot;
    pthread_mutex_unlock(&table.lock);
    return set;
}

/* The end of a look-up: copies what was found, and gives the lock back. */
static bool give(const struct node *node, struct gps_import *import) {
    if (node)
        *import = node->import;
    pthread_mutex_unlock(&table.lock);
    return node != NULL;
}

bool gps_registry_opened(const struct gps_id *region, uint64_t context, struct gps_import *import) {
    pthread_mutex_lock(&table.lock);
    return give(of(region, context), import);
}

bool gps_registry_import_at(uint64_t pointer, struct gps_import *import) {
    pthread_mutex_lock(&table.lock);
    return give(at(pointer), import);
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
    const struct node *node = table.by_pointer;
    while (node && !gps_id_equal(&node->import.region, region))
        node = node->by_pointer.next;
    return give(node, import);
}

static bool take(struct node *node, struct gps_import *import) {
    if (node) {
        *import = node->import;
        drop(node);
    }
    pthread_mutex_unlock(&table.lock);
    return node != NULL;
}

bool gps_registry_take_import(struct gps_import *import) {
    pthread_mutex_lock(&table.lock);
    return take(table.by_pointer, import);
}

bool gps_registry_imports_name(const char *name) {
    bool found = false;
    pthread_mutex_lock(&table.lock);
    for (struct node *node = table.by_pointer; node && !found; node = node->by_pointer.next)
        found = node->import.by_rule && strcmp(node->import.name, name) == 0;
    pthread_mutex_unlock(&table.lock);
    return found;
}

static bool take_of(uint64_t context, uint32_t epoch, struct gps_import *import) {
    pthread_mutex_lock(&table.lock);
    struct node *node = table.by_pointer;
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
    memset((void *)&table, 0, sizeof(table));
    table.slab.size = sizeof(struct node);
}
