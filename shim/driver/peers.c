/* peers.c - see peers.h. */
#include "peers.h"

#include <string.h>

#include "driver_ops.h"
#include "util/forgotten.h"

enum { MOST = 64 };

/* They stay what they are. Threads that fill them in write the same. */
static struct {
    uint8_t uuids[MOST][GPS_UUID_BYTES];
    _Atomic int count;
} devices;
GPS_FORGOTTEN(devices);

static int find_devices(void) {
    int count = 0;
    if (gps_ops->device_count(&count) != GPS_OK)
        return 0;
    count = count < MOST ? count : MOST;
    for (int ordinal = 0; ordinal < count; ordinal++)
        if (gps_ops->uuid(ordinal, devices.uuids[ordinal]) != GPS_OK)
            return 0;
    devices.count = count;
    return count;
}

int gps_peers_ordinal(const uint8_t uuid[GPS_UUID_BYTES]) {
    const int count = devices.count ? devices.count : find_devices();
    for (int ordinal = 0; ordinal < count; ordinal++)
        if (memcmp(devices.uuids[ordinal], uuid, GPS_UUID_BYTES) == 0)
            return ordinal;
    return -1;
}

int gps_peers_reached(const uint8_t uuid[GPS_UUID_BYTES]) {
    int here;
    bool can;
    const int there = gps_ops->device(&here) == GPS_OK ? gps_peers_ordinal(uuid) : -1;
    if (there < 0)
        return -1;
    if (there == here)
        return 1;
    return gps_ops->peer(here, there, &can) == GPS_OK ? can : -1;
}
