#include "references.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "directory/region_lock.h"
#include "membership.h"
#include "process.h"
#include "util/clock.h"
#include "util/forgotten.h"
#include "util/lock.h"

/* Free numbers below `used`, as a stack. */
struct numbers {
    unsigned used, free_count, free_size;
    unsigned *free;
};

/* Slots of regions have numbers before the divider; those of blocks lie behind it, where a process
 * that frees a region does not read them. `crowded`: there were too many regions, so any slot may
 * lie behind, and there is no divider any more. */
static struct {
    GPS_LOCK(GPS_RANK_SLOTS) lock;
    struct numbers before, behind;
    bool divided, crowded;
    void **locks; /* by number, or NULL */
    unsigned locks_size, locks_count;
} slots;
GPS_FORGOTTEN(slots);

static unsigned slot_number_take(struct numbers *numbers) {
    return numbers->free_count ? numbers->free[--numbers->free_count] : numbers->used++;
}

static void return_number(struct numbers *numbers, unsigned number) {
    if (numbers->free_count == numbers->free_size) {
        const unsigned size = numbers->free_size ? 2 * numbers->free_size : 64;
        unsigned *larger = realloc(numbers->free, size * sizeof(*larger));
        if (!larger)
            return; /* the number is lost, the file one slot longer */
        numbers->free = larger;
        numbers->free_size = size;
    }
    numbers->free[numbers->free_count++] = number;
}

static int write_slot(unsigned index, const struct gps_slot *slot) {
    struct gps_lease *lease = gps_membership_lease();
    return lease ? gps_lease_write(lease, index, slot) : 0;
}

int gps_references_set_untold(void) {
    GPS_LOCKED(&slots.lock);
    struct gps_lease *lease = gps_membership_lease();
    return lease ? gps_lease_set_untold(lease) : -ENODEV;
}

/* --- the divider --- */

static void divide(void) {
    struct gps_slot divider = {
        .since = gps_clock_now(), .state = GPS_SLOT_OPEN, .via = GPS_VIA_DIVIDER};
    gps_slot_seal(&divider);
    if (!slots.divided && !slots.crowded)
        slots.divided = write_slot(GPS_DIVIDER, &divider) == 0;
}

/* Removes the divider before a region's slot comes behind it. */
static int undivide(void) {
    const int status = slots.divided ? write_slot(GPS_DIVIDER, &(struct gps_slot){0}) : 0;
    slots.crowded |= status == 0;
    slots.divided &= !slots.crowded;
    return status;
}

static bool has_place_before(void) {
    return slots.before.free_count || slots.before.used < GPS_DIVIDER;
}

static int reference_slot_take(bool block, unsigned *index) {
    if (!block && has_place_before()) {
        *index = slot_number_take(&slots.before);
        return 0;
    }
    const int status = block ? 0 : undivide();
    if (block)
        divide();
    if (status == 0)
        *index = GPS_DIVIDER + 1 + slot_number_take(&slots.behind);
    return status;
}

static void return_slot(unsigned index) {
    if (index < GPS_DIVIDER)
        return_number(&slots.before, index);
    else
        return_number(&slots.behind, index - GPS_DIVIDER - 1);
}

/* --- slots --- */

/* Seals a slot and writes it; *index: where, or GPS_NO_SLOT for a new one. */
static int reference_put(struct gps_slot slot, bool block, unsigned *index) {
    gps_slot_seal(&slot);
    GPS_LOCKED(&slots.lock);
    const int status = *index == GPS_NO_SLOT ? reference_slot_take(block, index) : 0;
    return status < 0 ? status : write_slot(*index, &slot);
}

static int reference_begin(const struct gps_id *id, enum gps_slot_via via, bool block,
                           unsigned *slot) {
    const struct gps_slot intent = {
        .region = *id, .since = gps_clock_now(), .state = GPS_SLOT_INTENT, .via = (uint32_t)via};
    const int status = gps_membership_join();
    *slot = GPS_NO_SLOT;
    return status < 0 ? status : reference_put(intent, block, slot);
}

int gps_references_begin(const struct gps_id *id, enum gps_slot_via via, unsigned *slot) {
    return reference_begin(id, via, false, slot);
}

int gps_references_begin_block(const struct gps_id *id, enum gps_slot_via via, unsigned *slot) {
    return reference_begin(id, via, true, slot);
}

int gps_references_commit(unsigned slot, const struct gps_id *id, enum gps_slot_via via,
                          uint64_t address, uint64_t generation, uint64_t place) {
    const struct gps_slot open = {.region = *id,
                                  .address = address,
                                  .since = gps_clock_now(),
                                  .state = GPS_SLOT_OPEN,
                                  .via = (uint32_t)via,
                                  .generation = generation,
                                  .place = place};
    return slot == GPS_NO_SLOT ? 0 : reference_put(open, false, &slot);
}

int gps_references_wait(const struct gps_wait_slot *wait, unsigned *slot) {
    struct gps_slot waiting;
    memcpy(&waiting, wait, sizeof(waiting));
    *slot = GPS_NO_SLOT;
    return reference_put(waiting, false, slot);
}

int gps_references_rewrite(bool (*ask)(uint64_t address, unsigned *slot, struct gps_slot *now),
                           uint64_t address) {
    struct gps_slot now = {.since = gps_clock_now()};
    unsigned slot;
    int status = 0;
    GPS_LOCKED(&slots.lock);
    if (ask(address, &slot, &now)) {
        gps_slot_seal(&now);
        status = write_slot(slot, &now);
        status = status < 0 ? status : 1;
    }
    return status;
}

/* --- locks of regions --- */

/* A program has at most 65,530 mappings. */
enum { LOCKS_MAX = 4096 };

static bool has_place_for_lock(unsigned slot) {
    if (slots.locks_count == LOCKS_MAX)
        return false;
    if (slot < slots.locks_size)
        return true;
    const unsigned size = 2 * slot < 64 ? 64 : 2 * slot;
    void **larger = realloc(slots.locks, size * sizeof(*larger));
    if (!larger)
        return false;
    memset(larger + slots.locks_size, 0, (size - slots.locks_size) * sizeof(*larger));
    slots.locks = larger;
    slots.locks_size = size;
    return true;
}

bool gps_references_keep_lock(unsigned slot, void *lock) {
    GPS_LOCKED(&slots.lock);
    const bool kept = slot != GPS_NO_SLOT && has_place_for_lock(slot);
    if (kept) {
        slots.locks[slot] = lock;
        slots.locks_count++;
    }
    return kept;
}

static void end_lock(unsigned slot) {
    if (slot >= slots.locks_size || !slots.locks[slot])
        return;
    gps_region_unlock(slots.locks[slot]);
    slots.locks[slot] = NULL;
    slots.locks_count--;
}

int gps_references_end(unsigned slot) {
    if (slot == GPS_NO_SLOT)
        return 0;
    GPS_LOCKED(&slots.lock);
    const int status = write_slot(slot, &(struct gps_slot){0});
    end_lock(slot);
    return_slot(slot);
    return status;
}

enum { CROWD = 16 /* processes: 25 us */ };

static _Atomic unsigned looked_at; /* processes, at the last look */
GPS_FORGOTTEN(looked_at);

bool gps_references_crowded(void) {
    return atomic_load_explicit(&looked_at, memory_order_relaxed) >= CROWD;
}

int gps_references_users(const struct gps_id *id, struct gps_party *users, unsigned max,
                         unsigned *caches) {
    struct gps_user found[GPS_USERS_REPORTED];
    struct gps_user_counts counts = {0};
    const int count = gps_users_and_caches(gps_membership_store(), id, gps_process_self(), found,
                                           GPS_USERS_REPORTED, &counts);
    atomic_store_explicit(&looked_at, counts.processes, memory_order_relaxed);
    if (caches)
        *caches = counts.caches;
    for (unsigned i = 0; i < max && i < GPS_USERS_REPORTED && (int)i < count; i++)
        users[i] = (struct gps_party){found[i].owner, found[i].slot.since, found[i].slot.place};
    return count;
}
