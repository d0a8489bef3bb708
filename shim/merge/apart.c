/* apart.c - see apart.h. */
#include "apart.h"

#include <stdlib.h>
#include <string.h>

#include "area.h"
#include "process/membership.h"
#include "process/process.h"

struct mine {
    struct gps_id id;
    uint64_t size;
    bool shared;
};

struct search {
    struct mine *list; /* by id */
    size_t count;
    bool company; /* another process of the program merges */
};

static int by_id(const void *left, const void *right) {
    return memcmp(left, right, sizeof(struct gps_id));
}

/* How many are merged; the first `room` are listed. */
static size_t collect(struct mine *list, size_t room) {
    size_t count = 0;
    GPS_AREAS_LOCKED();
    for (struct gps_area *area = gps_area_next(NULL); area; area = gps_area_next(area))
        for (unsigned i = 0; i < area->count; i++) {
            const struct gps_block *block = &area->blocks[i];
            if (!gps_block_is_merged(block))
                continue;
            if (count < room)
                list[count] = (struct mine){.id = block->id, .size = block->size};
            count++;
        }
    return count;
}

static void note_slot(struct search *search, const struct gps_slot *slot) {
    struct mine *found =
        bsearch(&slot->region, search->list, search->count, sizeof(*search->list), by_id);
    for (; found && found > search->list && gps_id_equal(&found[-1].id, &slot->region); found--)
        ;
    const struct mine *end = search->list + search->count;
    for (; found && found < end && gps_id_equal(&found->id, &slot->region); found++)
        found->shared = true;
}

static bool note_process(void *arg, const struct gps_proc *proc) {
    struct search *search = arg;
    const struct gps_owner *owner = &proc->header.owner;
    if (!proc->alive || gps_process_is_self(owner))
        return true;
    for (unsigned i = 0; i < proc->slot_count; i++) {
        const struct gps_slot *slot = &proc->slots[i];
        if (slot->via == GPS_VIA_MERGE || slot->via == GPS_VIA_CREATOR)
            note_slot(search, slot);
        search->company |= (slot->via == GPS_VIA_MERGE || slot->via == GPS_VIA_OWN) &&
                           strcmp(owner->command, gps_process_self()->command) == 0;
    }
    return true;
}

/* What two of our own blocks share is no other process's, and counts. */
static uint64_t sum(const struct search *search) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < search->count; i++)
        bytes += search->list[i].shared ? 0 : search->list[i].size;
    return bytes;
}

bool gps_apart_bytes(uint64_t *bytes) {
    const struct gps_store *store = gps_membership_store();
    const size_t room = collect(NULL, 0);
    struct search search = {.list = store && room ? calloc(room, sizeof(*search.list)) : NULL};
    if (!search.list)
        return false;
    const size_t count = collect(search.list, room);
    search.count = count < room ? count : room;
    qsort(search.list, search.count, sizeof(*search.list), by_id);
    const bool known = gps_proc_each(store, note_process, &search) == 0 && search.company;
    if (known)
        *bytes = sum(&search);
    free(search.list);
    return known;
}
