#include "driver_ops.h"

#include <stdatomic.h>
#include <string.h>

#include "util/forgotten.h"

enum { MOST = 64 };

typedef uint8_t uuids_of_all[MOST][GPS_UUID_BYTES];

/* The devices' UUIDs, which never change. One thread keeps those that it has found. */
static struct {
    uuids_of_all uuids;
    _Atomic bool taken;
    _Atomic int count; /* 0: not yet */
} devices;
GPS_FORGOTTEN(devices);

static int find_devices(uuids_of_all uuids) {
    int count = 0;
    if (gps_ops->device_count(&count) != GPS_OK)
        return 0;
    count = count < MOST ? count : MOST;
    for (int ordinal = 0; ordinal < count; ordinal++)
        if (gps_ops->uuid(ordinal, uuids[ordinal]) != GPS_OK)
            return 0;
    return count;
}

static void uuids_keep(const uuids_of_all uuids, int count) {
    if (!count || atomic_exchange(&devices.taken, true))
        return;
    memcpy(devices.uuids, uuids, sizeof(devices.uuids[0]) * (size_t)count);
    devices.count = count;
}

static int uuids_find(const uuids_of_all uuids, int count, const uint8_t uuid[GPS_UUID_BYTES]) {
    for (int ordinal = 0; ordinal < count; ordinal++)
        if (memcmp(uuids[ordinal], uuid, GPS_UUID_BYTES) == 0)
            return ordinal;
    return -1;
}

int gps_peers_ordinal(const uint8_t uuid[GPS_UUID_BYTES]) {
    const int kept = devices.count;
    uuids_of_all found;
    if (kept)
        return uuids_find(devices.uuids, kept, uuid);
    const int count = find_devices(found);
    uuids_keep(found, count);
    return uuids_find(found, count, uuid);
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
