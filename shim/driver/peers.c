/* peers.c - see peers.h. */
#include "peers.h"

#include <string.h>

#include "driver_ops.h"

/* -1: this process does not see it. */
static int ordinal_of(const uint8_t wanted[GPS_UUID_BYTES]) {
    uint8_t found[GPS_UUID_BYTES];
    int count = 0;
    if (gps_ops->device_count(&count) != GPS_OK)
        return -1;
    for (int ordinal = 0; ordinal < count; ordinal++)
        if (gps_ops->uuid(ordinal, found) == GPS_OK && memcmp(found, wanted, GPS_UUID_BYTES) == 0)
            return ordinal;
    return -1;
}

int gps_peers_reached(const uint8_t uuid[GPS_UUID_BYTES]) {
    int here;
    bool can;
    const int there = gps_ops->device(&here) == GPS_OK ? ordinal_of(uuid) : -1;
    if (there < 0)
        return -1;
    if (there == here)
        return 1;
    return gps_ops->peer(here, there, &can) == GPS_OK ? can : -1;
}
