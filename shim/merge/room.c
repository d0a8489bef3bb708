/* room.c - see room.h. */
#include "room.h"

#include <stdatomic.h>
#include <string.h>

#include "driver/driver_ops.h"
#include "process/promise.h"
#include "util/clock.h"
#include "util/forgotten.h"
#include "util/program_signals.h"

#define MS     UINT64_C(1000000)
#define MARGIN (UINT64_C(64) << 20)

static struct {
    uint8_t gpu[GPS_UUID_BYTES];
    uint64_t promised;        /* on it by others, when that was last known */
    _Atomic uint32_t awaited; /* what is promised, in vain: a bit a device, the last for the rest */
} state;
GPS_FORGOTTEN(state);

/* A process without descriptors cannot look, and goes by the promises that it saw last. A claim is
 * for a moment, and not remembered. */
static struct gps_promises of_others(const uint8_t gpu[GPS_UUID_BYTES]) {
    struct gps_promises sum;
    const bool known = gps_promise_others(gpu, &sum) == 0;
    if (known || memcmp(state.gpu, gpu, GPS_UUID_BYTES) != 0 || state.promised < sum.promised) {
        memcpy(state.gpu, gpu, GPS_UUID_BYTES);
        state.promised = sum.promised;
    }
    return (struct gps_promises){state.promised, known ? sum.claimed : 0};
}

static struct gps_promises of_all(const uint8_t gpu[GPS_UUID_BYTES]) {
    const struct gps_promises others = of_others(gpu), own = gps_promise_own(gpu);
    return (struct gps_promises){others.promised + own.promised, others.claimed + own.claimed};
}

/* Whether less is free than so much. *left: see gps_room_claim. */
static bool lacks(uint64_t bytes, uint64_t *left) {
    uint64_t room;
    *left = GPS_ROOM_PLENTY;
    if (!bytes || gps_ops->room(&room) != GPS_OK || room >= bytes + MARGIN)
        return false;
    *left = room;
    return room < bytes;
}

bool gps_room_is_overdrawn(const uint8_t gpu[GPS_UUID_BYTES], uint64_t *left) {
    return lacks(of_all(gpu).promised, left);
}

/* The claim is one of those that are added up, if it could be published. */
bool gps_room_claim_on(const uint8_t gpu[GPS_UUID_BYTES], uint64_t bytes,
                       struct gps_room_claim *claim) {
    claim->left = GPS_ROOM_PLENTY;
    claim->contended = false;
    if (!gps_promise_any())
        return true;
    memcpy(claim->gpu, gpu, GPS_UUID_BYTES);
    claim->begun = gps_clock_monotonic();
    claim->bytes = gps_promise_claim(gpu, (int64_t)bytes) == 0 ? bytes : 0;
    const struct gps_promises all = of_all(gpu);
    if (!lacks(all.promised + all.claimed + bytes - claim->bytes, &claim->left))
        return true;
    claim->contended = claim->left >= all.promised + bytes;
    gps_room_unclaim(claim);
    return false;
}

bool gps_room_claim(const struct gps_area *area, uint64_t bytes, struct gps_room_claim *claim) {
    *claim = (struct gps_room_claim){.bytes = 0};
    return area->rule->overcommit || gps_room_claim_on(area->uuid, bytes, claim);
}

bool gps_room_is_late(const struct gps_room_claim *claim) {
    return claim->bytes && gps_clock_monotonic() - claim->begun >= GPS_CLAIM_LASTS;
}

void gps_room_unclaim(struct gps_room_claim *claim) {
    if (claim->bytes)
        gps_promise_claim(claim->gpu, -(int64_t)claim->bytes);
    claim->bytes = 0;
}

bool gps_room_await(uint64_t *until) {
    const uint64_t now = gps_clock_monotonic();
    int device;
    const uint32_t bit = gps_room_bit(gps_ops->device(&device) == GPS_OK ? device : -1);
    if (!*until)
        *until = atomic_load(&state.awaited) & bit ? now : now + GPS_SECOND;
    if (now >= *until) {
        atomic_fetch_or(&state.awaited, bit);
        return false;
    }
    gps_program_signals_poll(NULL, MS);
    return true;
}

void gps_room_found(int device) {
    const uint32_t bit = gps_room_bit(device);
    if (atomic_load_explicit(&state.awaited, memory_order_relaxed) & bit)
        atomic_fetch_and(&state.awaited, ~bit);
}
