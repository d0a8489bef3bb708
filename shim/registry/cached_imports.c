/* cached_imports.c - imports that the program has closed and open_cache keeps. See registry.h. */
#include "driver/driver_ops.h"
#include "import_table.h"

static void cache(struct node *node) {
    DL_APPEND(gps_imports.cached, node);
    gps_imports.sum.count++;
    gps_imports.sum.bytes += node->import.size;
    node->cached = true;
    const uint64_t begin = node->import.pointer, end = begin + node->import.size;
    if (gps_imports.sum.count == 1 || begin < gps_imports.lowest)
        gps_imports.lowest = begin;
    if (end > gps_imports.highest)
        gps_imports.highest = end;
}

void gps_registry_watch(uint64_t pointer, int record_file, int owner_file) {
    gps_lock_take(&gps_imports.lock);
    struct node *node = at(pointer);
    if (node) {
        node->import.told = GPS_SLOT_OPEN;
        node->import.record_file = record_file;
        node->import.owner_file = owner_file;
    }
    gps_lock_give(&gps_imports.lock);
}

void gps_registry_outdate(int file) {
    gps_lock_take(&gps_imports.lock);
    for (struct node *node = first(); node; node = node->by_pointer.next) {
        struct gps_import *import = &node->import;
        if (file < 0 || import->record_file == file || import->owner_file == file)
            import->stale = true;
    }
    gps_lock_give(&gps_imports.lock);
}

bool gps_registry_cache(uint64_t pointer, struct gps_import *import) {
    gps_lock_take(&gps_imports.lock);
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
    gps_lock_take(&gps_imports.lock);
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
    gps_lock_take(&gps_imports.lock);
    struct node *node = gps_imports.cached;
    while (node && !fits(&node->import, arg))
        node = node->next;
    if (node) {
        *import = node->import;
        unlink_node(node);
        DL_APPEND(gps_imports.ending, node);
    }
    return unlocked(node != NULL);
}

bool gps_registry_dismiss(int *file) {
    gps_lock_take(&gps_imports.lock);
    struct node *node = gps_imports.cached;
    while (node && node->import.stale)
        node = node->next;
    if (node) {
        node->import.stale = true;
        *file = node->import.record_file;
    }
    return unlocked(node != NULL);
}

bool gps_registry_any_stale(void) {
    gps_lock_take(&gps_imports.lock);
    const struct node *node = gps_imports.cached;
    while (node && !node->import.stale)
        node = node->next;
    return unlocked(node != NULL);
}

void gps_registry_ended(uint64_t pointer) {
    gps_lock_take(&gps_imports.lock);
    struct node *node = ending_at(pointer);
    if (node) {
        DL_DELETE(gps_imports.ending, node);
        gps_slab_put(&gps_imports.slab, node);
    }
    gps_lock_give(&gps_imports.lock);
}

struct gps_cached gps_registry_cached(void) {
    gps_lock_take(&gps_imports.lock);
    const struct gps_cached sum = gps_imports.sum;
    gps_lock_give(&gps_imports.lock);
    return sum;
}

bool gps_registry_caches(uint64_t pointer) {
    gps_lock_take(&gps_imports.lock);
    const struct node *node = at(pointer);
    const bool cached = node ? node->cached : ending_at(pointer) != NULL;
    return unlocked(cached);
}

/* That begins at `pointer`. */
static bool is_in_cached(uint64_t pointer, uint64_t address) {
    gps_lock_take(&gps_imports.lock);
    const struct node *node = at(pointer);
    const bool in = node && node->cached && address - pointer < node->import.size;
    return unlocked(in);
}

/* What was cached in a context that another thread destroys may be gone. */
static bool is_allocated(uint64_t pointer) {
    struct gps_alloc unused;
    return gps_registry_find(pointer, &unused);
}

bool gps_registry_closed(uint64_t address) {
    uint64_t base, size;
    if (address >= atomic_load_explicit(&gps_imports.highest, memory_order_relaxed) ||
        address < atomic_load_explicit(&gps_imports.lowest, memory_order_relaxed))
        return false;
    return gps_ops->range(address, &base, &size) == GPS_OK &&
           (is_in_cached(address, address) || is_in_cached(base, address)) && !is_allocated(base);
}

bool gps_registry_untold(uint64_t *pointer) {
    gps_lock_take(&gps_imports.lock);
    const struct node *node = first();
    while (node && (node->cached || node->import.told != GPS_SLOT_CACHED))
        node = node->by_pointer.next;
    if (node)
        *pointer = node->import.pointer;
    return unlocked(node != NULL);
}

bool gps_registry_tell(uint64_t pointer, unsigned *slot, struct gps_slot *now) {
    gps_lock_take(&gps_imports.lock);
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
