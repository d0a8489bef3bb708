/* tombstones.c - see tombstones.h. */
#include "tombstones.h"

#include <string.h>

enum { BUCKETS = 1024 };

struct tombstone {
    struct gps_id id;
    struct tombstone *next; /* in its bucket */
    bool stands;
};

static struct {
    struct tombstone ring[GPS_TOMBSTONES]; /* the oldest is replaced */
    unsigned oldest;
    struct tombstone *buckets[BUCKETS]; /* by id, which is a hash */
} state;

static struct tombstone **bucket_of(const struct gps_id *id) {
    return &state.buckets[(id->bytes[0] | id->bytes[1] << 8) % BUCKETS];
}

bool gps_tombstones_take(const struct gps_id *id) {
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

bool gps_tombstones_add(const struct gps_id *id, struct gps_id *oldest) {
    struct tombstone *place = &state.ring[state.oldest], **bucket = bucket_of(id);
    const bool replaced = place->stands;
    if (replaced) {
        *oldest = place->id;
        gps_tombstones_take(oldest);
    }
    *place = (struct tombstone){.id = *id, .next = *bucket, .stands = true};
    *bucket = place;
    state.oldest = (state.oldest + 1) % GPS_TOMBSTONES;
    return replaced;
}

const struct gps_id *gps_tombstones_at(unsigned place) {
    return state.ring[place].stands ? &state.ring[place].id : NULL;
}

void gps_tombstones_reset(void) {
    memset(&state, 0, sizeof(state));
}
