/* room.c - see room.h. */
#include "room.h"

#include <string.h>

#include "driver/driver_ops.h"
#include "process/promise.h"

#define MARGIN (UINT64_C(64) << 20)

bool gps_room_lacks(const uint8_t gpu[GPS_UUID_BYTES], uint64_t bytes, uint64_t *left) {
    uint64_t others, room;
    *left = GPS_ROOM_PLENTY;
    gps_promise_others(gpu, &others);
    const uint64_t promised = gps_promise_own(gpu) + others;
    if (!promised || gps_ops->room(&room) != GPS_OK || room >= promised + bytes + MARGIN)
        return false;
    *left = room;
    return room < promised + bytes;
}

bool gps_room_claim_on(const uint8_t gpu[GPS_UUID_BYTES], uint64_t bytes,
                       struct gps_room_claim *claim) {
    claim->left = GPS_ROOM_PLENTY;
    if (!gps_promise_any())
        return true;
    memcpy(claim->gpu, gpu, GPS_UUID_BYTES);
    claim->bytes = gps_promise_change(gpu, (int64_t)bytes) == 0 ? bytes : 0;
    if (!gps_room_lacks(gpu, bytes - claim->bytes, &claim->left))
        return true;
    gps_room_unclaim(claim);
    return false;
}

bool gps_room_claim(const struct gps_area *area, uint64_t bytes, struct gps_room_claim *claim) {
    *claim = (struct gps_room_claim){.whole = true};
    return area->rule->overcommit || gps_room_claim_on(area->uuid, bytes, claim);
}

void gps_room_unclaim(struct gps_room_claim *claim) {
    if (claim->bytes)
        gps_promise_change(claim->gpu, -(int64_t)claim->bytes);
    claim->bytes = 0;
}
