#include "entangled.h"

#include <stdatomic.h>

#include "util/forgotten.h"

static _Atomic unsigned ways; /* a bit each */
GPS_FORGOTTEN(ways);

void gps_entangle(enum gps_entangled way) {
    atomic_fetch_or(&ways, 1u << way);
}

bool gps_is_entangled(enum gps_entangled way) {
    return atomic_load(&ways) >> way & 1;
}
