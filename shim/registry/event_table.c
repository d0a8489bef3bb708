/* event_table.c - events that other processes may know. See registry.h. */

#include "hash_table.h"
#include "registry.h"
#include "util/forgotten.h"
#include "util/lock.h"

struct node {
    struct gps_entry entry; /* by its event */
    struct gps_event event;
};

static struct {
    GPS_LOCK(GPS_RANK_EVENTS) lock;
    struct gps_table events;
    struct gps_slab slab;
    _Atomic bool any; /* there ever was one: programs without do not take the lock */
} table;
GPS_FORGOTTEN(table);

static struct node *event_node_find(uint64_t event) {
    return GPS_ENTRY_OF(struct node, entry, gps_table_find(&table.events, event));
}

bool gps_registry_add_event(const struct gps_event *event) {
    atomic_store(&table.any, true);
    GPS_LOCKED(&table.lock);
    struct node *node = event_node_find(event->event);
    if (!node)
        node = gps_table_make(&table.events, &table.slab, sizeof(*node), event->event);
    if (node)
        node->event = *event;
    return node != NULL;
}

static bool event_node_take(struct node *node, struct gps_event *taken) {
    if (node) {
        *taken = node->event;
        gps_table_drop(&table.events, &table.slab, &node->entry);
    }
    return node;
}

static struct node *any_shared(void) {
    return GPS_TABLE_SEEK(node, &table.events, one->event.opened || one->event.exported);
}

bool gps_registry_shares_event(void) {
    GPS_LOCKED(&table.lock);
    return any_shared() != NULL;
}

bool gps_registry_has_events(void) {
    return atomic_load_explicit(&table.any, memory_order_relaxed);
}

bool gps_registry_note_event(uint64_t event, uint32_t waited, struct gps_event *now) {
    GPS_LOCKED(&table.lock);
    struct node *node = event_node_find(event);
    if (!node || (waited ? node->event.waited != 0 : node->event.recorded))
        return false;
    if (waited)
        node->event.waited = waited;
    else
        node->event.recorded = true;
    return GPS_GIVE(node, event, now);
}

bool gps_registry_take_shared_event(struct gps_event *taken) {
    GPS_LOCKED(&table.lock);
    return event_node_take(any_shared(), taken);
}

bool gps_registry_find_event(uint64_t event, struct gps_event *found) {
    if (!atomic_load(&table.any))
        return false;
    GPS_LOCKED(&table.lock);
    return GPS_GIVE(event_node_find(event), event, found);
}

bool gps_registry_take_event(uint64_t event, struct gps_event *taken) {
    if (!atomic_load(&table.any))
        return false;
    GPS_LOCKED(&table.lock);
    return event_node_take(event_node_find(event), taken);
}

bool gps_registry_exported_event(const struct gps_id *id, struct gps_event *found) {
    GPS_LOCKED(&table.lock);
    return GPS_GIVE(GPS_TABLE_SEEK(node, &table.events,
                                   one->event.exported && gps_id_equal(&one->event.id, id)),
                    event, found);
}

static bool take_of(uint64_t context, uint32_t era, struct gps_event *taken) {
    GPS_LOCKED(&table.lock);
    return event_node_take(
        GPS_TABLE_SEEK(node, &table.events,
                       one->event.context == context && (int32_t)(one->event.era - era) < 0),
        taken);
}

void gps_registry_purge_events(uint64_t context, uint32_t era,
                               void (*fn)(const struct gps_event *event)) {
    struct gps_event event;
    while (take_of(context, era, &event))
        fn(&event);
}
