#include "record_reservation.h"

#include <pthread.h>

#include "util/forgotten.h"
#include "util/lock.h"

enum { BUCKETS = 1024 };

struct tombstone {
    struct gps_id id;
    struct tombstone *next; /* in its bucket */
    bool stands;
};

static struct {
    GPS_LOCK(GPS_RANK_RECORD_CLAIMS) lock;
    pthread_cond_t ended;
    struct gps_record_reservation *reservations;
    unsigned waiting;
    struct tombstone ring[GPS_TOMBSTONES]; /* the oldest is replaced */
    unsigned oldest, next;                 /* numbers; those between have not been replaced */
    struct tombstone *buckets[BUCKETS];    /* by id, which is a hash */
} state = {.ended = PTHREAD_COND_INITIALIZER};
GPS_FORGOTTEN(state);

/* --- with the lock --- */

static struct tombstone **bucket_of(const struct gps_id *id) {
    return &state.buckets[(id->bytes[0] | id->bytes[1] << 8) % BUCKETS];
}

/* Removes a tombstone. False: there is none of this id. */
static bool tombstone_take(const struct gps_id *id) {
    struct tombstone **link = bucket_of(id);
    while (*link && !gps_id_equal(&(*link)->id, id))
        link = &(*link)->next;
    struct tombstone *found = *link;
    if (!found)
        return false;
    *link = found->next;
    found->stands = false;
    return true;
}

static bool is_reserved(const struct gps_id *id) {
    const struct gps_record_reservation *reservation = state.reservations;
    while (reservation && !gps_id_equal(&reservation->id, id))
        reservation = reservation->next;
    return reservation;
}

/* True: the id was that of a tombstone. */
static bool reserve_now(struct gps_record_reservation *reservation, const struct gps_id *id) {
    *reservation = (struct gps_record_reservation){.id = *id, .next = state.reservations};
    state.reservations = reservation;
    return tombstone_take(&reservation->id);
}

/* --- reservations --- */

bool gps_record_reserve_id(struct gps_record_reservation *reservation, const struct gps_id *id) {
    GPS_LOCKED(&state.lock);
    while (is_reserved(id)) {
        state.waiting++;
        pthread_cond_wait(&state.ended, &state.lock.mutex);
        state.waiting--;
    }
    return reserve_now(reservation, id);
}

/* No thread can have reserved the oldest tombstone, since a reservation removes it. */
static bool reserve_oldest(unsigned keep, struct gps_record_reservation *oldest) {
    bool found = false;
    while (!found && state.next - state.oldest > keep) {
        const struct tombstone *place = &state.ring[state.oldest++ % GPS_TOMBSTONES];
        found = place->stands && reserve_now(oldest, &place->id);
    }
    return found;
}

bool gps_record_leave_tombstone(const struct gps_id *id, unsigned limit,
                                struct gps_record_reservation *oldest) {
    GPS_LOCKED(&state.lock);
    const bool full = reserve_oldest(limit - (id ? 1 : 0), oldest);
    if (id) {
        struct tombstone *place = &state.ring[state.next++ % GPS_TOMBSTONES];
        *place = (struct tombstone){.id = *id, .next = *bucket_of(id), .stands = true};
        *bucket_of(id) = place;
    }
    return full;
}

bool gps_record_reserve_tombstone(unsigned *place, struct gps_record_reservation *reservation) {
    bool found = false;
    GPS_LOCKED(&state.lock);
    for (; !found && *place < GPS_TOMBSTONES; ++*place)
        found = state.ring[*place].stands && reserve_now(reservation, &state.ring[*place].id);
    return found;
}

void gps_record_release(struct gps_record_reservation *reservation) {
    struct gps_record_reservation **at = &state.reservations;
    GPS_LOCKED(&state.lock);
    while (*at != reservation)
        at = &(*at)->next;
    *at = reservation->next;
    if (state.waiting)
        pthread_cond_broadcast(&state.ended);
}
