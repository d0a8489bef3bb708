/* record_claims.c - see record_claims.h. */
#include "record_claims.h"

#include <pthread.h>
#include <string.h>

#include "util/lock.h"

static struct {
    GPS_LOCK(GPS_RANK_RECORD_CLAIMS) lock; /* of the tombstones, too */
    pthread_cond_t ended;
    struct gps_record_claim *claims;
    unsigned waiting;
} state = {.ended = PTHREAD_COND_INITIALIZER};

static bool is_claimed(const struct gps_id *id) {
    const struct gps_record_claim *claim = state.claims;
    while (claim && !gps_id_equal(&claim->id, id))
        claim = claim->next;
    return claim;
}

static void link(struct gps_record_claim *claim, const struct gps_id *id) {
    *claim = (struct gps_record_claim){.id = *id, .next = state.claims};
    state.claims = claim;
}

bool gps_record_claim(struct gps_record_claim *claim, const struct gps_id *id) {
    gps_lock_take(&state.lock);
    while (is_claimed(id)) {
        state.waiting++;
        pthread_cond_wait(&state.ended, &state.lock.mutex);
        state.waiting--;
    }
    link(claim, id);
    const bool stood = gps_tombstones_take(id);
    gps_lock_give(&state.lock);
    return stood;
}

/* Nobody can have claimed the oldest one, since a claim takes its tombstone away. */
bool gps_record_leave_tombstone(const struct gps_id *id, struct gps_record_claim *oldest) {
    struct gps_id replaced;
    gps_lock_take(&state.lock);
    const bool full = gps_tombstones_add(id, &replaced);
    if (full)
        link(oldest, &replaced);
    gps_lock_give(&state.lock);
    return full;
}

bool gps_record_claim_tombstone(unsigned *place, struct gps_record_claim *claim) {
    const struct gps_id *found = NULL;
    gps_lock_take(&state.lock);
    while (!found && *place < GPS_TOMBSTONES)
        found = gps_tombstones_at((*place)++);
    if (found) {
        link(claim, found);
        gps_tombstones_take(&claim->id);
    }
    gps_lock_give(&state.lock);
    return found;
}

void gps_record_release(struct gps_record_claim *claim) {
    struct gps_record_claim **at = &state.claims;
    gps_lock_take(&state.lock);
    while (*at != claim)
        at = &(*at)->next;
    *at = claim->next;
    if (state.waiting)
        pthread_cond_broadcast(&state.ended);
    gps_lock_give(&state.lock);
}

void gps_record_claims_reset(void) {
    memset((void *)&state, 0, sizeof(state));
}
