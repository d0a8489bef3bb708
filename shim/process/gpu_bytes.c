#include "gpu_bytes.h"

#include <string.h>

#include "driver/driver_ops.h"

enum { NO_SLOT, GETS_SLOT, HAS_SLOT };

static bool gpu_bytes_describe(uint64_t address, unsigned *slot, struct gps_slot *now) {
    const struct gps_gpu_bytes *mine = (const struct gps_gpu_bytes *)(uintptr_t)address;
    *slot = mine->slot;
    now->region = mine->gpu;
    now->via = (uint32_t)mine->via;
    now->state = GPS_SLOT_OPEN;
    now->address = mine->bytes(mine->number);
    now->generation = mine->reason;
    return true;
}

bool gps_gpu_bytes_of_device(struct gps_gpu_bytes *mine, enum gps_slot_via via, int device,
                             uint64_t (*bytes)(int device)) {
    uint8_t uuid[GPS_UUID_BYTES];
    if (atomic_load(&mine->phase))
        return true;
    if (gps_ops->uuid(device, uuid) != GPS_OK)
        return false;
    memcpy(&mine->gpu, uuid, sizeof(uuid));
    mine->via = via;
    mine->number = device;
    mine->bytes = bytes;
    return true;
}

/* A thread that comes while another gets the slot returns at once: it has changed the figure
 * before, and the other thread publishes that. */
int gps_gpu_bytes_publish(struct gps_gpu_bytes *mine) {
    int phase = NO_SLOT;
    if (atomic_compare_exchange_strong(&mine->phase, &phase, GETS_SLOT)) {
        const int status = gps_references_begin(&mine->gpu, mine->via, &mine->slot);
        if (status < 0)
            gps_references_end(mine->slot);
        atomic_store(&mine->phase, status < 0 ? NO_SLOT : HAS_SLOT);
        if (status < 0)
            return status;
    } else if (phase == GETS_SLOT) {
        return 0;
    }
    const int written = gps_references_rewrite(gpu_bytes_describe, (uintptr_t)mine);
    return written < 0 ? written : 0;
}
