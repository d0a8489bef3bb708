#include "record_claims.h"

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
    struct gps_record_claim *claims;
    unsigned waiting;
    struct tombstone ring[GPS_TOMBSTONES]; /* the oldest is replaced */
    unsigned oldest;
    struct tombstone *buckets[BUCKETS]; /* by id, which is a hash */
} state = {.ended = PTHREAD_COND_INITIALIZER};
GPS_FORGOTTEN(state);

/* --- with the lock --- */

static struct tombstone **bucket_of(const struct gps_id *id) {
    return &state.buckets[(id->bytes[0] | id->bytes[1] << 8) % BUCKETS];
}

/* Takes a tombstone away. False: there is none of this id. */
static bool take(const struct gps_id *id) {
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

static bool is_claimed(const struct gps_id *id) {
    const struct gps_record_claim *claim = state.claims;
    while (claim && !gps_id_equal(&claim->id, id))
        claim = claim->next;
    return claim;
}

/* True: it was that of a tombstone. */
static bool claim_now(struct gps_record_claim *claim, const struct gps_id *id) {
    *claim = (struct gps_record_claim){.id = *id, .next = state.claims};
    state.claims = claim;
    return take(&claim->id);
}

/* --- claims --- */

bool gps_record_claim_id(struct gps_record_claim *claim, const struct gps_id *id) {
    GPS_LOCKED(&state.lock);
    while (is_claimed(id)) {
        state.waiting++;
        pthread_cond_wait(&state.ended, &state.lock.mutex);
        state.waiting--;
    }
    return claim_now(claim, id);
}

/* Nobody can have claimed the oldest one, since a claim takes its tombstone away. */
bool gps_record_leave_tombstone(const struct gps_id *id, struct gps_record_claim *oldest) {
    GPS_LOCKED(&state.lock);
    struct tombstone *place = &state.ring[state.oldest++ % GPS_TOMBSTONES];
    const bool full = place->stands && claim_now(oldest, &place->id);
    *place = (struct tombstone){.id = *id, .next = *bucket_of(id), .stands = true};
    *bucket_of(id) = place;
    return full;
}

bool gps_record_claim_tombstone(unsigned *place, struct gps_record_claim *claim) {
    bool found = false;
    GPS_LOCKED(&state.lock);
    for (; !found && *place < GPS_TOMBSTONES; ++*place)
        found = state.ring[*place].stands && claim_now(claim, &state.ring[*place].id);
    return found;
}

void gps_record_release(struct gps_record_claim *claim) {
    struct gps_record_claim **at = &state.claims;
    GPS_LOCKED(&state.lock);
    while (*at != claim)
        at = &(*at)->next;
    *at = claim->next;
    if (state.waiting)
        pthread_cond_broadcast(&state.ended);
}
