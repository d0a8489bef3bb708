/* references.c - see references.h. */
#include "references.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "audit/reporter.h"
#include "lifecycle/lifecycle.h"
#include "util/clock.h"

enum { SHOWN_USERS = 16 };

/* Free slot numbers below `used`, as a stack. */
static struct {
    pthread_mutex_t lock;
    unsigned used, free_count, free_size;
    unsigned *free;
} slots = {.lock = PTHREAD_MUTEX_INITIALIZER};

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

static void write_slot(unsigned index, const struct gps_slot *slot) {
    struct gps_lease *lease = gps_life_lease();
    const int status = lease ? gps_lease_write(lease, index, slot) : 0;
    if (status < 0)
        gps_report_store(status, "an open handle could not be published");
}

unsigned gps_references_begin(const struct gps_id *id, enum gps_slot_via via) {
    struct gps_slot slot = {
        .region = *id, .since = gps_clock_now(), .state = GPS_SLOT_INTENT, .via = (uint32_t)via};
    if (!gps_life_lease())
        return GPS_NO_SLOT;
    gps_slot_seal(&slot);
    pthread_mutex_lock(&slots.lock);
    const unsigned index = take_number();
    write_slot(index, &slot);
    pthread_mutex_unlock(&slots.lock);
    return index;
}

void gps_references_commit(unsigned index, const struct gps_id *id, enum gps_slot_via via,
                           uint64_t address, uint64_t generation) {
    struct gps_slot slot = {.region = *id,
                            .address = address,
                            .since = gps_clock_now(),
                            .state = GPS_SLOT_OPEN,
                            .via = (uint32_t)via,
                            .generation = generation};
    if (index == GPS_NO_SLOT)
        return;
    gps_slot_seal(&slot);
    pthread_mutex_lock(&slots.lock);
    write_slot(index, &slot);
    pthread_mutex_unlock(&slots.lock);
}

void gps_references_end(unsigned index) {
    if (index == GPS_NO_SLOT)
        return;
    pthread_mutex_lock(&slots.lock);
    write_slot(index, &(struct gps_slot){0});
    return_number(index);
    pthread_mutex_unlock(&slots.lock);
}

unsigned gps_references_users(const struct gps_id *id, struct gps_party *users, unsigned max) {
    struct gps_user found[SHOWN_USERS];
    const int count = gps_users_of(gps_life_store(), id, gps_life_self(), found, SHOWN_USERS);
    for (unsigned i = 0; i < max && i < SHOWN_USERS && (int)i < count; i++)
        users[i] = (struct gps_party){found[i].owner, found[i].slot.since};
    return count > 0 ? (unsigned)count : 0;
}

void gps_references_reset(void) {
    memset((void *)&slots, 0, sizeof(slots)); /* the parent's array is lost, not freed: locks */
}
