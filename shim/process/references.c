/* references.c - see references.h. */
#include "references.h"

#include <stdlib.h>
#include <string.h>

#include "membership.h"
#include "process.h"
#include "util/clock.h"
#include "util/forgotten.h"
#include "util/lock.h"

/* Free slot numbers below `used`, as a stack. */
static struct {
    GPS_LOCK(GPS_RANK_SLOTS) lock;
    unsigned used, free_count, free_size;
    unsigned *free;
} slots;
GPS_FORGOTTEN(slots);

static unsigned take_number(void) {
    return slots.free_count ? slots.free[--slots.free_count] : slots.used++;
}

static void return_number(unsigned index) {
    if (slots.free_count == slots.free_size) {
        const unsigned size = slots.free_size ? 2 * slots.free_size : 64;
        unsigned *larger = realloc(slots.free, size * sizeof(*larger));
        if (!larger)
            return; /* the number is lost, the file one slot longer */
        slots.free = larger;
        slots.free_size = size;
    }
    slots.free[slots.free_count++] = index;
}

static int write_slot(unsigned index, const struct gps_slot *slot) {
    struct gps_lease *lease = gps_membership_lease();
    return lease ? gps_lease_write(lease, index, slot) : 0;
}

/* Seals a slot and writes it; *index: where, or GPS_NO_SLOT for a new number. */
static int put(struct gps_slot slot, unsigned *index) {
    gps_slot_seal(&slot);
    GPS_LOCKED(&slots.lock);
    if (*index == GPS_NO_SLOT)
        *index = take_number();
    return write_slot(*index, &slot);
}

void gps_references_reserve(unsigned count) {
    slots.used = slots.used > count ? slots.used : count;
}

int gps_references_begin(const struct gps_id *id, enum gps_slot_via via, unsigned *slot) {
    const struct gps_slot intent = {
        .region = *id, .since = gps_clock_now(), .state = GPS_SLOT_INTENT, .via = (uint32_t)via};
    const int status = gps_membership_join();
    *slot = GPS_NO_SLOT;
    return status < 0 ? status : put(intent, slot);
}

int gps_references_commit(unsigned slot, const struct gps_id *id, enum gps_slot_via via,
                          uint64_t address, uint64_t generation) {
    const struct gps_slot open = {.region = *id,
                                  .address = address,
                                  .since = gps_clock_now(),
                                  .state = GPS_SLOT_OPEN,
                                  .via = (uint32_t)via,
                                  .generation = generation};
    return slot == GPS_NO_SLOT ? 0 : put(open, &slot);
}

int gps_references_wait(const struct gps_wait_slot *wait, unsigned *slot) {
    struct gps_slot waiting;
    memcpy(&waiting, wait, sizeof(waiting));
    *slot = GPS_NO_SLOT;
    return put(waiting, slot);
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

int gps_references_end(unsigned slot) {
    if (slot == GPS_NO_SLOT)
        return 0;
    GPS_LOCKED(&slots.lock);
    const int status = write_slot(slot, &(struct gps_slot){0});
    return_number(slot);
    return status;
}

int gps_references_users(const struct gps_id *id, struct gps_party *users, unsigned max) {
    unsigned caches;
    return gps_references_users_and_caches(id, users, max, &caches);
}

int gps_references_users_and_caches(const struct gps_id *id, struct gps_party *users, unsigned max,
                                    unsigned *caches) {
    struct gps_user found[GPS_USERS_REPORTED];
    const int count = gps_users_and_caches(gps_membership_store(), id, gps_process_self(), found,
                                           GPS_USERS_REPORTED, caches);
    for (unsigned i = 0; i < max && i < GPS_USERS_REPORTED && (int)i < count; i++)
        users[i] = (struct gps_party){found[i].owner, found[i].slot.since};
    return count;
}
