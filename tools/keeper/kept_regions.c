/*
 * kept_regions.c - the list of kept regions: finding, publishing, adopting, dropping.
 *
 * A sorted array of pointers: ids are hashes, so a search is a few steps, and ten thousand regions
 * move 80 KB when one more comes.
 */
#include "kept_regions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "directory/lease.h"
#include "directory/name.h"
#include "directory/region.h"

/* The index at which the region is, or belongs. */
static size_t position(const struct kept_regions *list, const struct gps_id *id) {
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memcmp(&list->items[middle]->record.id, id, sizeof(*id)) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct kept_region *kept_regions_find(const struct kept_regions *list, const struct gps_id *id) {
    size_t at = position(list, id);
    if (at == list->count || !gps_id_equal(&list->items[at]->record.id, id))
        return NULL;
    return list->items[at];
}

static bool reserve(struct kept_regions *list) {
    if (list->count < list->capacity)
        return true;
    size_t capacity = list->capacity > 0 ? 2 * list->capacity : 16;
    struct kept_region **items = realloc(list->items, capacity * sizeof(*items));
    if (!items)
        return false;
    list->items = items;
    list->capacity = capacity;
    return true;
}

static struct kept_region *insert(struct kept_regions *list, const struct kept_region *from) {
    if (!reserve(list))
        return NULL;
    struct kept_region *kept = malloc(sizeof(*kept));
    if (!kept)
        return NULL;
    *kept = *from;
    size_t at = position(list, &kept->record.id);
    memmove(&list->items[at + 1], &list->items[at], (list->count - at) * sizeof(*list->items));
    list->items[at] = kept;
    list->count++;
    return kept;
}

static void forget(struct kept_regions *list, struct kept_region *kept) {
    size_t at = position(list, &kept->record.id);
    memmove(&list->items[at], &list->items[at + 1], (--list->count - at) * sizeof(*list->items));
    free(kept);
}

int kept_regions_add(struct kept_regions *list, const struct gps_region_record *record,
                     int descriptor, uint64_t now) {
    struct kept_region made = {.record = *record,
                               .descriptor = descriptor,
                               .since = now,
                               .last_held = now,
                               .held = true,
                               .published = true};
    if (list->count >= list->max)
        return -EMFILE;
    struct kept_region *kept = insert(list, &made);
    if (!kept)
        return -ENOMEM;
    int status = gps_region_publish(list->store, record);
    if (status != 0)
        forget(list, kept);
    /* -EEXIST would say that we have it. */
    return status == -EEXIST ? -EBUSY : status;
}

/* --- adopting --- */

struct adoption {
    struct kept_regions *list;
    uint64_t now;
    int status;
};

static bool adopt(void *arg, const struct gps_region_record *record, int status, const char *why) {
    struct adoption *adoption = arg;
    struct kept_regions *list = adoption->list;
    struct kept_region made = {
        .descriptor = -1, .since = adoption->now, .last_held = adoption->now, .held = true};
    (void)why;
    if (status != 0 || record->backing != GPS_BACKING_VMM ||
        gps_owner_equal(&record->owner, &list->self))
        return true;
    if (gps_lease_probe(list->store, &record->owner) == GPS_ALIVE) {
        adoption->status = -EAGAIN;
        return false;
    }
    made.record = *record;
    made.record.owner = list->self;
    gps_record_seal(&made.record);
    if (list->count < list->max && !kept_regions_find(list, &record->id) && !insert(list, &made))
        adoption->status = -ENOMEM;
    return adoption->status == 0;
}

int kept_regions_adopt(struct kept_regions *list, uint64_t now) {
    struct adoption adoption = {.list = list, .now = now};
    int status = gps_region_each(list->store, adopt, &adoption);
    return status != 0 ? status : adoption.status;
}

/* --- dropping --- */

void kept_regions_drop(struct kept_regions *list, struct kept_region *kept) {
    const struct gps_region_record *record = &kept->record;
    if (record->name[0] != 0)
        gps_name_release(list->store, record->name, &list->self, &record->id);
    gps_region_remove(list->store, &record->id);
    if (kept->descriptor >= 0)
        close(kept->descriptor);
    forget(list, kept);
}

void kept_regions_drop_all(struct kept_regions *list) {
    while (list->count > 0)
        kept_regions_drop(list, list->items[list->count - 1]);
    free(list->items);
    list->items = NULL;
    list->capacity = 0;
}
