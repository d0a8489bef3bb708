#include "mapping.h"

#include <stdlib.h>
#include <string.h>

#include "directory/record.h"
#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "util/forgotten.h"
#include "util/lock.h"

/* All mappings, by address. They are few: looked up by bisection, moved when one comes or goes. */
static struct {
    GPS_LOCK(GPS_RANK_MAPPINGS) lock;
    struct gps_mapping *list;
    size_t count, room;
    uint64_t
        peers[GPS_MAPPING_DEVICES]; /* of memory on a device: which others reach it, a bit each */
} state;
GPS_FORGOTTEN(state);

bool gps_mapping_exists;
GPS_FORGOTTEN(gps_mapping_exists);

/* --- the table --- */

/* The first mapping that begins above the address. */
static size_t above(uint64_t address) {
    size_t low = 0, high = state.count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (state.list[middle].pointer <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct gps_mapping *locate(uint64_t address) {
    const size_t next = above(address);
    struct gps_mapping *vmm = next ? &state.list[next - 1] : NULL;
    return vmm && address - vmm->pointer < vmm->extent ? vmm : NULL;
}

static bool add(const struct gps_mapping *vmm) {
    GPS_LOCKED(&state.lock);
    if (state.count == state.room) {
        const size_t room = state.room ? 2 * state.room : 64;
        struct gps_mapping *larger = realloc(state.list, room * sizeof(*larger));
        if (larger) {
            state.list = larger;
            state.room = room;
        }
    }
    const bool fits = state.count < state.room;
    if (fits) {
        const size_t at = above(vmm->pointer);
        memmove(&state.list[at + 1], &state.list[at], (state.count - at) * sizeof(*state.list));
        state.list[at] = *vmm;
        state.count++;
        __atomic_store_n(&gps_mapping_exists, true, __ATOMIC_RELEASE);
    }
    return fits;
}

static bool take(uint64_t pointer, struct gps_mapping *taken) {
    GPS_LOCKED(&state.lock);
    struct gps_mapping *vmm = locate(pointer);
    const bool found = vmm && vmm->pointer == pointer;
    if (found) {
        *taken = *vmm;
        const size_t behind = (size_t)(vmm - state.list) + 1;
        memmove(vmm, vmm + 1, (state.count - behind) * sizeof(*vmm));
        state.count--;
        __atomic_store_n(&gps_mapping_exists, state.count != 0, __ATOMIC_RELEASE);
    }
    return found;
}

bool gps_mapping_find(uint64_t address, struct gps_mapping *found) {
    GPS_LOCKED(&state.lock);
    const struct gps_mapping *vmm = locate(address);
    if (vmm)
        *found = *vmm;
    return vmm != NULL;
}

static void name(struct gps_mapping *vmm, const struct gps_region_record *record) {
    vmm->region = record->id;
    memcpy(vmm->handle, record->handle, GPS_HANDLE_BYTES);
}

void gps_mapping_name(uint64_t pointer, const struct gps_region_record *record) {
    GPS_LOCKED(&state.lock);
    struct gps_mapping *vmm = locate(pointer);
    if (vmm)
        name(vmm, record);
}

bool gps_mapping_has(const struct gps_id *region) {
    GPS_LOCKED(&state.lock);
    for (size_t i = 0; i < state.count; i++)
        if (state.list[i].created && gps_id_equal(&state.list[i].region, region))
            return true;
    return false;
}

/* fn gets a copy of one mapping at a time, without the lock: it may be slow, and may change the
 * table. */
void gps_mapping_each(void (*fn)(void *arg, const struct gps_mapping *vmm), void *arg) {
    struct gps_mapping vmm = {.pointer = 0};
    for (bool more = true; more;) {
        gps_lock_take(&state.lock);
        const size_t next = above(vmm.pointer);
        more = next < state.count;
        if (more)
            vmm = state.list[next];
        gps_lock_give(&state.lock);
        if (more)
            fn(arg, &vmm);
    }
}

/* --- mapping --- */

static uint64_t peers_of(int device) {
    GPS_LOCKED(&state.lock);
    return device >= 0 && device < GPS_MAPPING_DEVICES ? state.peers[device] : 0;
}

bool gps_mapping_reaches(int device, int home) {
    return device == home || device >= GPS_MAPPING_DEVICES || peers_of(home) >> device & 1;
}

int gps_mapping_allow(uint64_t pointer, uint64_t size, int home, bool writable) {
    int here, code = gps_ops->device(&here);
    if (code == GPS_OK)
        code = gps_ops->allow(pointer, size, here, writable);
    const uint64_t peers = peers_of(home);
    for (int peer = 0; code == GPS_OK && peer < GPS_MAPPING_DEVICES; peer++)
        if (peers >> peer & 1 && peer != here)
            code = gps_ops->allow(pointer, size, peer, writable);
    return code;
}

int gps_mapping_map(uint64_t pointer, uint64_t size, uint64_t block, int home, bool writable) {
    int code = gps_ops->map(pointer, size, block);
    if (code != GPS_OK)
        return code;
    code = gps_mapping_allow(pointer, size, home, writable);
    if (code != GPS_OK)
        gps_ops->unmap(pointer, size);
    return code;
}

/* Maps the block somewhere and records it. Without success the block is let go of. */
static int place(struct gps_mapping *vmm) {
    int code = gps_context_state();
    if (code == GPS_OK)
        code = gps_ops->device(&vmm->accessor);
    if (code == GPS_OK)
        code = gps_ops->reserve(vmm->extent, &vmm->pointer);
    if (code == GPS_OK) {
        code = gps_mapping_map(vmm->pointer, vmm->extent, vmm->block, vmm->device, vmm->writable);
        if (code == GPS_OK && !add(vmm)) {
            gps_ops->unmap(vmm->pointer, vmm->extent);
            code = GPS_OUT_OF_MEMORY;
        }
        if (code != GPS_OK)
            gps_ops->unreserve(vmm->pointer, vmm->extent);
    }
    if (code != GPS_OK)
        gps_ops->block_release(vmm->block);
    return code;
}

static int round_up(int device, uint64_t size, uint64_t *extent) {
    uint64_t granule;
    const int code = gps_ops->granularity(device, &granule);
    if (code != GPS_OK)
        return code;
    if (size > UINT64_MAX - granule)
        return GPS_OUT_OF_MEMORY;
    *extent = (size + granule - 1) / granule * granule;
    return GPS_OK;
}

int gps_mapping_create(uint64_t size, uint64_t *pointer, uint64_t *extent) {
    struct gps_mapping vmm = {.size = size, .writable = true, .created = true};
    int code = gps_ops->device(&vmm.device);
    if (code == GPS_OK)
        code = round_up(vmm.device, size, &vmm.extent);
    if (code == GPS_OK)
        code = gps_ops->block_create(vmm.device, vmm.extent, &vmm.block);
    if (code == GPS_OK)
        code = place(&vmm);
    if (code == GPS_OK) {
        *pointer = vmm.pointer;
        *extent = vmm.extent;
    }
    return code;
}

int gps_mapping_ordinal(const uint8_t wanted[GPS_UUID_BYTES]) {
    uint8_t uuid[GPS_UUID_BYTES];
    for (int ordinal = 0; ordinal < GPS_MAPPING_DEVICES; ordinal++) {
        if (gps_ops->uuid(ordinal, uuid) != GPS_OK)
            return -1;
        if (memcmp(uuid, wanted, GPS_UUID_BYTES) == 0)
            return ordinal;
    }
    return -1;
}

int gps_mapping_open(int descriptor, const struct gps_region_record *record, uint64_t size,
                     uint64_t *pointer) {
    struct gps_mapping vmm = {.size = size,
                              .extent = record->extent,
                              .device = gps_mapping_ordinal(record->device),
                              .writable = !(record->flags & GPS_REGION_READ_ONLY)};
    name(&vmm, record);
    int code = gps_peers_reached(record->device) == 0 ? GPS_PEER_UNSUPPORTED : GPS_OK;
    if (code == GPS_OK)
        code = gps_ops->block_import(descriptor, &vmm.block);
    if (code == GPS_OK)
        code = place(&vmm);
    if (code == GPS_OK)
        *pointer = vmm.pointer;
    return code;
}

static int end(uint64_t pointer) {
    struct gps_mapping vmm;
    if (!take(pointer, &vmm))
        return GPS_INVALID_VALUE;
    const int code = gps_ops->unmap(vmm.pointer, vmm.extent);
    if (code != GPS_OK) {
        add(&vmm);
        return code;
    }
    gps_ops->unreserve(vmm.pointer, vmm.extent);
    gps_ops->block_release(vmm.block);
    return GPS_OK;
}

int gps_mapping_close(uint64_t pointer) {
    gps_scope_synchronize();
    return end(pointer);
}

int gps_mapping_free(uint64_t pointer) {
    const int code = gps_scope_synchronize();
    return code == GPS_OK ? end(pointer) : code;
}

int gps_mapping_descriptor(uint64_t pointer, int *descriptor) {
    struct gps_mapping vmm;
    return gps_mapping_at(pointer, &vmm) ? gps_ops->block_export(vmm.block, descriptor)
                                         : GPS_INVALID_VALUE;
}

/* --- suspension --- */

static void set_block(uint64_t pointer, uint64_t block, bool away) {
    GPS_LOCKED(&state.lock);
    struct gps_mapping *vmm = locate(pointer);
    if (vmm) {
        vmm->block = block;
        vmm->away = away;
        vmm->borrowed = true;
    }
}

int gps_mapping_let_go(uint64_t pointer) {
    struct gps_mapping vmm;
    if (!gps_mapping_at(pointer, &vmm))
        return GPS_INVALID_VALUE;
    int code = gps_ops->unmap(vmm.pointer, vmm.extent);
    if (code != GPS_OK)
        return code;
    set_block(pointer, 0, true);
    return gps_ops->block_release(vmm.block);
}

int gps_mapping_take_again(uint64_t pointer, int descriptor) {
    struct gps_mapping vmm;
    uint64_t block;
    if (!gps_mapping_at(pointer, &vmm))
        return GPS_INVALID_VALUE;
    int code = gps_ops->block_import(descriptor, &block);
    if (code != GPS_OK)
        return code;
    code = gps_ops->map(vmm.pointer, vmm.extent, block);
    if (code == GPS_OK) {
        code = gps_ops->allow(vmm.pointer, vmm.extent, vmm.accessor, vmm.writable);
        if (code != GPS_OK)
            gps_ops->unmap(vmm.pointer, vmm.extent);
    }
    if (code == GPS_OK)
        set_block(pointer, block, false);
    else
        gps_ops->block_release(block);
    return code;
}

/* --- peers --- */

struct enabling {
    int home, accessor;
};

static void enable(void *arg, const struct gps_mapping *vmm) {
    const struct enabling *enabling = arg;
    if (vmm->device == enabling->home)
        gps_ops->allow(vmm->pointer, vmm->extent, enabling->accessor, vmm->writable);
}

void gps_mapping_enable(int home, int accessor) {
    struct enabling enabling = {home, accessor};
    gps_lock_take(&state.lock);
    state.peers[home] |= UINT64_C(1) << accessor;
    gps_lock_give(&state.lock);
    gps_mapping_each(enable, &enabling);
}
