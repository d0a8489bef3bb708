/*
 * registry_event.c - events. See registry.h.
 *
 * Destroying an event twice kills the process in the driver, so what was destroyed is remembered,
 * by address, until an event is created there again. Only events made for other processes and
 * events opened from them are kept; ordinary ones cost one look at a fixed table.
 */
#include <pthread.h>

#include "registry.h"
#include "table.h"

enum { DESTROYED = 1024 };

struct node {
    uint64_t event;
    UT_hash_handle hh;
};

static struct {
    pthread_mutex_t lock;
    struct node *live;
    struct gps_slab slab;
    _Atomic uint64_t destroyed[DESTROYED]; /* by hash */
} table = {.lock = PTHREAD_MUTEX_INITIALIZER, .slab.size = sizeof(struct node)};

static _Atomic uint64_t *destroyed_slot(uint64_t event) {
    return &table.destroyed[gps_table_hash(&event, sizeof(event)) & (DESTROYED - 1)];
}

static void add(uint64_t event) {
    pthread_mutex_lock(&table.lock);
    struct node *node;
    HASH_FIND(hh, table.live, &event, sizeof(event), node);
    if (!node && (node = gps_slab_get(&table.slab)) != NULL) {
        node->event = event;
        HASH_ADD(hh, table.live, event, sizeof(event), node);
        if (!node->hh.tbl)
            gps_slab_put(&table.slab, node);
    }
    pthread_mutex_unlock(&table.lock);
}

static bool remove_live(uint64_t event) {
    pthread_mutex_lock(&table.lock);
    struct node *node;
    HASH_FIND(hh, table.live, &event, sizeof(event), node);
    if (node) {
        HASH_DELETE(hh, table.live, node);
        gps_slab_put(&table.slab, node);
    }
    pthread_mutex_unlock(&table.lock);
    return node != NULL;
}

void gps_registry_event_created(uint64_t event, bool interprocess) {
    uint64_t again = event;
    atomic_compare_exchange_strong(destroyed_slot(event), &again, 0);
    if (interprocess)
        add(event);
}

enum gps_event_state gps_registry_event_destroy(uint64_t event) {
    if (remove_live(event)) {
        atomic_store(destroyed_slot(event), event);
        return GPS_EVENT_LIVE;
    }
    return atomic_load(destroyed_slot(event)) == event ? GPS_EVENT_DESTROYED : GPS_EVENT_UNKNOWN;
}

void gps_registry_event_restore(uint64_t event) {
    gps_registry_event_created(event, true);
}

void gps_registry_reset_events(void) {
    memset((void *)&table, 0, sizeof(table));
    table.slab.size = sizeof(struct node);
}
