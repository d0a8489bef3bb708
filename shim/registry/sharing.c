#include "sharing.h"

#include <stdatomic.h>

#include "util/forgotten.h"

static _Atomic unsigned ways; /* a bit for each enum gps_sharing */
GPS_FORGOTTEN(ways);

void gps_sharing_note(enum gps_sharing way) {
    atomic_fetch_or(&ways, 1u << way);
}

bool gps_sharing_has(enum gps_sharing way) {
    return atomic_load(&ways) >> way & 1;
}
