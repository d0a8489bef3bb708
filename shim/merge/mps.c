/* mps.c - see mps.h. */
#include "mps.h"

#include <stdatomic.h>

#include "driver/driver_ops.h"
#include "util/forgotten.h"

static _Atomic bool forbidden;
GPS_FORGOTTEN(forbidden);

bool gps_mps_forbids(const struct gps_rule *rule, int device) {
    const bool forbids = rule->mps == GPS_MPS_OFF && gps_ops->by_mps(device);
    if (forbids)
        forbidden = true;
    return forbids;
}

bool gps_mps_has_forbidden(void) {
    return forbidden;
}
