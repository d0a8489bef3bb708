/* region_list.c - the list of regions: finding, publishing, adopting, dropping, sweeping. */
#include "region_list.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "directory/lease.h"
#include "directory/name.h"
#include "directory/region.h"
#include "offloaded.h"
#include "util/clock.h"
#include "util/transition.h"

/* A process writes its slot before it asks the keeper; a slow one must not count as ended. After a
 * keeper's death, a process that was about to open a region may have opened it within this time. */
#define GRACE GPS_SECOND
/* A creator sees within a second that there is another keeper, and deposits its regions again. */
#define DEPOSITED_WITHIN (2 * GPS_SECOND)

/* --- the table --- */

#define FROM(stage, next) GPS_STATE_ROW(KEEPER_REGION_##stage, next),
#define TO(stage)         GPS_TO(KEEPER_REGION_##stage)
static const struct gps_state_row stages[] = {KEEPER_REGION_STAGES(FROM, TO)};

static void set_stage(struct keeper_region *region, enum keeper_region_stage stage) {
    gps_transition_check("kept region", stages, atomic_load(&region->stage), stage);
    atomic_store(&region->stage, stage);
}

/* Pages that are never touched take no memory. */
int region_list_begin(struct region_list *list) {
    void *table;
    do
        table = mmap(NULL, sizeof(struct region_table) + list->max * sizeof(struct keeper_region),
                     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    while (table == MAP_FAILED && (list->max /= 2) > 0);
    if (table == MAP_FAILED)
        return -ENOMEM;
    list->table = table;
    return 0;
}

static struct keeper_region *take_place(struct region_list *list) {
    struct keeper_region *region = list->free;
    const size_t reached = atomic_load(&list->table->reached);
    if (region) {
        list->free = region->next_free;
    } else if (reached < list->max) {
        region = &list->table->regions[reached];
        atomic_store(&list->table->reached, reached + 1);
    }
    return region;
}

static void give_place(struct region_list *list, struct keeper_region *region) {
    region->next_free = list->free;
    list->free = region;
}

struct keeper_region *region_list_find(const struct region_list *list, const struct gps_id *id) {
    struct keeper_region *region;
    HASH_FIND(hh, list->first, id, sizeof(*id), region);
    return region;
}

static bool index_add(struct region_list *list, struct keeper_region *region) {
    HASH_ADD(hh, list->first, record.id, sizeof(region->record.id), region);
    return region->hh.tbl != NULL;
}

static struct keeper_region *region_list_insert(struct region_list *list,
                                                const struct gps_region_record *record,
                                                int descriptor, uint64_t now) {
    struct keeper_region *region = take_place(list);
    if (!region)
        return NULL;
    region->record = *record;
    region->descriptor = descriptor;
    region->copy = -1;
    region->reload_until = 0;
    region->published = false;
    region->since = region->last_held = now;
    region->held = true;
    region->creator_holds = false;
    region->users = region->intents = 0;
    if (!index_add(list, region)) {
        give_place(list, region);
        return NULL;
    }
    set_stage(region, KEEPER_REGION_KEPT);
    return region;
}

static void region_list_forget(struct region_list *list, struct keeper_region *region) {
    HASH_DELETE(hh, list->first, region);
    set_stage(region, KEEPER_REGION_FREE);
    give_place(list, region);
}

/* Publishes a region that the dead keeper was publishing, or that could not be published when it
 * was adopted: there may be room now. */
static void region_list_publish(const struct region_list *list, struct keeper_region *region) {
    if (!region->published)
        region->published = gps_region_publish(list->store, &region->record) == 0;
    offloaded_tell(list, region);
}

void region_list_give(struct region_list *list, struct keeper_region *region, int descriptor) {
    region->descriptor = descriptor;
    atomic_fetch_add(&list->table->deposits, 1);
    region_list_publish(list, region);
}

/* Drops kept copies before it refuses a region. */
static bool region_list_has_room(struct region_list *list) {
    if (region_list_count(list) + list->table->copies >= list->max)
        offloaded_trim(list, 0);
    return region_list_count(list) + list->table->copies < list->max;
}

int region_list_add(struct region_list *list, const struct gps_region_record *record,
                    int descriptor, uint64_t now) {
    if (!region_list_has_room(list))
        return -EMFILE;
    struct keeper_region *region = region_list_insert(list, record, descriptor, now);
    if (!region)
        return -ENOMEM;
    int status = gps_region_publish(list->store, record);
    region->published = status == 0;
    if (status == 0) {
        atomic_fetch_add(&list->table->deposits, 1);
    } else { /* the descriptor stays the caller's */
        set_stage(region, KEEPER_REGION_ENDING);
        region_list_forget(list, region);
    }
    /* -EEXIST would mean that the keeper has the region. */
    return status == -EEXIST ? -EBUSY : status;
}

/* --- adopting --- */

struct adoption {
    struct region_list *list;
    uint64_t now;
    bool inherits; /* from the living keeper of this name, and not from dead ones */
    int status;
};

static bool is_to_be_had(struct adoption *adoption, const struct gps_region_record *record) {
    const bool ours = gps_owner_equal(&record->owner, &adoption->list->self);
    if (record->backing != GPS_BACKING_VMM || ours != adoption->inherits)
        return false;
    if (!ours && gps_lease_probe(adoption->list->store, &record->owner) == GPS_ALIVE)
        adoption->status = -EAGAIN;
    return adoption->status == 0;
}

static bool adoption_take_region(void *arg, const struct gps_region_record *record, int status,
                                 const char *why) {
    struct adoption *adoption = arg;
    struct region_list *list = adoption->list;
    (void)why;
    if (status != 0 || !is_to_be_had(adoption, record))
        return adoption->status == 0;
    struct gps_region_record made = *record;
    made.owner = list->self;
    gps_record_seal(&made);
    if (region_list_find(list, &record->id))
        return true;
    if (!region_list_has_room(list)) {
        adoption->status = adoption->inherits ? -EMFILE : 0;
        return adoption->status == 0;
    }
    struct keeper_region *region = region_list_insert(list, &made, -1, adoption->now);
    if (!region) {
        adoption->status = -ENOMEM;
        return false;
    }
    region->published = adoption->inherits;
    if (record->status.state == GPS_STATE_CLOSING)
        set_stage(region, KEEPER_REGION_RETIRED);
    return true;
}

int region_list_adopt(struct region_list *list, uint64_t now, bool inherits) {
    struct adoption adoption = {.list = list, .now = now, .inherits = inherits};
    const int status = gps_region_each(list->store, adoption_take_region, &adoption);
    return status != 0 ? status : adoption.status;
}

/* --- dropping --- */

static void release_name(const struct region_list *list, const struct keeper_region *region) {
    const struct gps_region_record *record = &region->record;
    if (record->name[0] != 0)
        gps_name_release(list->store, record->name, &list->self, &record->id);
}

/* Takes the descriptor first, so that no process gets it while it is being closed: its number may
 * be another file's then. */
static void finish_drop(struct region_list *list, struct keeper_region *region) {
    const int descriptor = atomic_exchange(&region->descriptor, -1);
    release_name(list, region);
    if (descriptor >= 0)
        close(descriptor);
    offloaded_forget(list, region);
    gps_region_remove(list->store, &region->record.id);
    region_list_forget(list, region);
}

void region_list_drop(struct region_list *list, struct keeper_region *region) {
    set_stage(region, KEEPER_REGION_ENDING);
    finish_drop(list, region);
}

/* The region keeps its descriptor, because a suspended holder has only its slot. Even if its record
 * cannot be changed it cannot be opened, because no new process gets it from here. */
static void finish_retirement(struct region_list *list, struct keeper_region *region) {
    release_name(list, region);
    (void)gps_region_set_status(list->store, &region->record, GPS_STATE_CLOSING, 0);
}

void region_list_retire(struct region_list *list, struct keeper_region *region) {
    set_stage(region, KEEPER_REGION_RETIRED);
    finish_retirement(list, region);
}

/* --- after the death of the keeper that served --- */

static void recover_place(struct region_list *list, struct keeper_region *region) {
    const unsigned stage = atomic_load(&region->stage);
    list->table->copies += stage != KEEPER_REGION_FREE && region->copy >= 0;
    if (stage == KEEPER_REGION_FREE)
        give_place(list, region);
    else if (!index_add(list, region))
        return; /* no memory for the index: the region is not found */
    else if (stage == KEEPER_REGION_RETIRED)
        finish_retirement(list, region);
    else if (stage == KEEPER_REGION_ENDING)
        finish_drop(list, region);
    else
        region_list_publish(list, region); /* the next deposit points its name at it */
}

void region_list_recover(struct region_list *list) {
    list->first = list->free = NULL;
    list->table->copies = 0;
    for (size_t i = 0; i < atomic_load(&list->table->reached); i++)
        recover_place(list, &list->table->regions[i]);
}

void region_list_settle(struct region_list *list) {
    struct keeper_region *following;
    for (struct keeper_region *region = list->first; region; region = following) {
        struct gps_region_record record;
        following = region->hh.next;
        const int status = gps_region_read(list->store, &region->record.id, &record, NULL);
        if (status == -ENOENT)
            region_list_drop(list, region);
        else if (status == 0 && record.status.state == GPS_STATE_CLOSING &&
                 !region_list_retired(region))
            region_list_retire(list, region);
    }
}

/* --- sweeping: one pass over procs/ serves all regions --- */

struct census {
    struct region_list *list;
    unsigned others;
};

static void count_slot(const struct gps_owner *holder, const struct gps_slot *slot,
                       struct keeper_region *region) {
    if (slot->via == GPS_VIA_CREATOR && gps_owner_equal(holder, &region->record.creator))
        region->creator_holds = true;
    else if (slot->state == GPS_SLOT_INTENT)
        region->intents++;
    else
        region->users++;
}

static bool count_process(void *arg, const struct gps_proc *proc) {
    struct census *census = arg;
    if (!proc->alive || gps_owner_equal(&proc->header.owner, &census->list->self))
        return true;
    census->others++;
    for (struct keeper_region *region = census->list->first; region && proc->unknown;
         region = region->hh.next)
        region->creator_holds = true; /* the process may have any region, and be its creator */
    for (unsigned i = 0; i < proc->slot_count; i++) {
        const struct gps_slot *slot = &proc->slots[i];
        struct keeper_region *region =
            gps_slot_has_region(slot) ? region_list_find(census->list, &slot->region) : NULL;
        if (region)
            count_slot(&proc->header.owner, slot, region);
    }
    return true;
}

bool region_list_takes(const struct keeper_region *region, const struct gps_owner *sender) {
    return region_list_is_block(region) || gps_owner_equal(sender, &region->record.creator);
}

bool region_list_lost(const struct keeper_region *region, uint64_t now) {
    const bool awaited = region->creator_holds && !region_list_is_block(region);
    return region->descriptor < 0 && region->copy < 0 && !awaited &&
           now - region->since >= DEPOSITED_WITHIN;
}

/* Within its grace a live creator without a slot still has the region. */
static bool creator_has(const struct region_list *list, const struct keeper_region *region,
                        uint64_t now, uint64_t *next) {
    if (region->creator_holds)
        return true;
    if (now - region->since >= GRACE ||
        gps_lease_probe(list->store, &region->record.creator) != GPS_ALIVE)
        return false;
    sooner(next, region->since + GRACE);
    return true;
}

/* Whether a process can deposit the descriptor (again). */
static bool can_be_deposited(const struct keeper_region *region, uint64_t now, uint64_t *next) {
    if (region->descriptor >= 0 || region->copy >= 0 || region->creator_holds || region->users > 0)
        return true;
    sooner(next, region->since + GRACE);
    return region->intents > 0 && now - region->since < GRACE;
}

static bool is_retained(const struct region_list *list, struct keeper_region *region, uint64_t now,
                        uint64_t *next) {
    const struct gps_region_record *record = &region->record;
    bool creator = creator_has(list, region, now, next);
    bool held = creator || region->users + region->intents > 0;
    if (region_list_retired(region))
        return held;
    if (!can_be_deposited(region, now, next))
        return false;
    if (held || region->held)
        region->last_held = now;
    region->held = held;
    switch (record->keep) {
    case GPS_KEEP_OWNER:
        return creator;
    case GPS_KEEP_USERS:
        return held;
    case GPS_KEEP_FOR:
        if (!held && now - region->last_held < record->keep_for)
            sooner(next, region->last_held + record->keep_for);
        return held || now - region->last_held < record->keep_for;
    default:
        return true;
    }
}

/* Counts the holders of each region. */
static int census_count_all(struct census *census) {
    for (struct keeper_region *region = census->list->first; region; region = region->hh.next) {
        region->creator_holds = false;
        region->users = region->intents = 0;
    }
    return gps_proc_each(census->list->store, count_process, census);
}

static bool keeper_region_is_idle(const struct keeper_region *region) {
    return region_list_is_block(region) && region->record.keep != GPS_KEEP_FOREVER &&
           !region_list_retired(region) && !region->creator_holds &&
           region->users + region->intents == 0;
}

int region_list_reclaim(struct region_list *list) {
    struct census census = {.list = list};
    struct keeper_region *following;
    int status = census_count_all(&census);
    if (status != 0)
        return status;
    status = -ENOENT;
    for (struct keeper_region *region = list->first; region; region = following) {
        following = region->hh.next;
        if (!keeper_region_is_idle(region))
            continue;
        region_list_drop(list, region);
        status = 0;
    }
    return status;
}

/* Drops a region that no process has, else retires it: holders may be suspended. Counts are new. */
static void keeper_region_end(struct region_list *list, struct keeper_region *region) {
    if (!region->creator_holds && region->users == 0)
        region_list_drop(list, region);
    else if (!region_list_retired(region))
        region_list_retire(list, region);
}

void region_list_end(struct region_list *list, struct keeper_region *region) {
    struct census census = {.list = list};
    if (census_count_all(&census) != 0)
        region->creator_holds = true; /* a process may have it */
    keeper_region_end(list, region);
}

int region_list_sweep(struct region_list *list, uint64_t now, uint64_t *next, unsigned *others) {
    struct census census = {.list = list};
    struct keeper_region *following;
    const int status = census_count_all(&census);
    if (status != 0)
        return status;
    for (struct keeper_region *region = list->first; region; region = following) {
        following = region->hh.next;
        if (!is_retained(list, region, now, next))
            keeper_region_end(list, region);
        else if (region_list_lost(region, now) && !region_list_is_block(region) &&
                 !region_list_retired(region))
            region_list_retire(list, region); /* its name is free for another */
        else
            region_list_publish(list, region);
    }
    offloaded_trim(list, UINT64_MAX);
    *others = census.others;
    return 0;
}
