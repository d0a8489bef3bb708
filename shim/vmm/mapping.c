#include "mapping.h"

#include <stdlib.h>
#include <string.h>

#include "driver/driver_ops.h"
#include "registry/range_tree.h"
#include "util/forgotten.h"
#include "util/lock.h"

struct node {
    struct gps_range range;
    struct gps_mapping is;
};

static struct {
    GPS_LOCK(GPS_RANK_MAPPINGS) lock;
    struct gps_range *mappings;
    uint64_t made; /* the mappings so far */
    uint64_t
        peers[GPS_MAPPING_DEVICES]; /* the devices that reach memory on each device, a bit each */
} state;
GPS_FORGOTTEN(state);

bool gps_mapping_exists;
GPS_FORGOTTEN(gps_mapping_exists);

/* --- the table --- */

/* The mapping around an address, or the next one. */
static struct node *node_from(uint64_t address) {
    return (struct node *)gps_range_from(state.mappings, address);
}
_Static_assert(offsetof(struct node, range) == 0, "the first");

static struct gps_mapping *locate(uint64_t address) {
    struct node *node = node_from(address);
    return node && node->range.from <= address ? &node->is : NULL;
}

static void mapping_insert(struct node *node) {
    GPS_LOCKED(&state.lock);
    gps_range_add(&state.mappings, &node->range);
    __atomic_store_n(&gps_mapping_exists, true, __ATOMIC_RELEASE);
}

static bool mapping_add(const struct gps_mapping *vmm) {
    struct node *node = malloc(sizeof(*node));
    if (!node)
        return false;
    node->range = (struct gps_range){.from = vmm->pointer, .size = vmm->extent};
    node->is = *vmm;
    node->is.serial = __atomic_add_fetch(&state.made, 1, __ATOMIC_RELAXED);
    mapping_insert(node);
    return true;
}

/* Takes the mapping that begins at the address. NULL: none does. */
static struct node *mapping_take(uint64_t pointer) {
    GPS_LOCKED(&state.lock);
    struct node *node = node_from(pointer);
    if (!node || node->range.from != pointer)
        return NULL;
    gps_range_remove(&state.mappings, &node->range);
    __atomic_store_n(&gps_mapping_exists, state.mappings != NULL, __ATOMIC_RELEASE);
    return node;
}

bool gps_mapping_find(uint64_t address, struct gps_mapping *found) {
    GPS_LOCKED(&state.lock);
    const struct gps_mapping *vmm = locate(address);
    if (vmm)
        *found = *vmm;
    return vmm != NULL;
}

bool gps_mapping_next(struct gps_mapping *vmm) {
    GPS_LOCKED(&state.lock);
    const struct node *node = node_from(vmm->pointer + vmm->extent);
    if (node)
        *vmm = node->is;
    return node;
}

static void mapping_set_name(struct gps_mapping *vmm, const struct gps_region_record *record) {
    vmm->region = record->id;
    memcpy(vmm->handle, record->handle, GPS_HANDLE_BYTES);
}

void gps_mapping_name(uint64_t pointer, const struct gps_region_record *record) {
    GPS_LOCKED(&state.lock);
    struct gps_mapping *vmm = locate(pointer);
    if (vmm)
        mapping_set_name(vmm, record);
}

bool gps_mapping_has(const struct gps_id *region) {
    struct gps_mapping vmm = {.pointer = 0};
    while (gps_mapping_next(&vmm))
        if (vmm.created && gps_id_equal(&vmm.region, region))
            return true;
    return false;
}

/* --- mapping --- */

#define GAP (UINT64_C(2) << 20)

int gps_mapping_reserve(uint64_t extent, uint64_t *pointer) {
    return gps_ops->reserve(extent + GAP, pointer);
}

void gps_mapping_unreserve(uint64_t pointer, uint64_t extent) {
    gps_ops->unreserve(pointer, extent + GAP);
}

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

/* Maps the block somewhere and records it. Without success the block is released. */
static int mapping_place(struct gps_mapping *vmm) {
    int code = gps_context_state();
    if (code == GPS_OK)
        code = gps_ops->device(&vmm->accessor);
    if (code == GPS_OK)
        code = gps_mapping_reserve(vmm->extent, &vmm->pointer);
    if (code == GPS_OK) {
        code = gps_mapping_map(vmm->pointer, vmm->extent, vmm->block, vmm->device, vmm->writable);
        if (code == GPS_OK && !mapping_add(vmm)) {
            gps_ops->unmap(vmm->pointer, vmm->extent);
            code = GPS_OUT_OF_MEMORY;
        }
        if (code != GPS_OK)
            gps_mapping_unreserve(vmm->pointer, vmm->extent);
    }
    if (code != GPS_OK)
        gps_ops->block_release(vmm->block);
    return code;
}

static int mapping_round_up(int device, uint64_t size, uint64_t *extent) {
    uint64_t granule;
    const int code = gps_ops->granularity(device, &granule);
    if (code != GPS_OK)
        return code;
    if (size > UINT64_MAX - granule)
        return GPS_OUT_OF_MEMORY;
    *extent = (size + granule - 1) / granule * granule;
    return GPS_OK;
}

int gps_mapping_create(uint64_t size, uint64_t room, uint64_t *pointer, uint64_t *extent) {
    struct gps_mapping vmm = {.size = size, .writable = true, .created = true};
    int code = gps_ops->device(&vmm.device);
    if (code == GPS_OK)
        code = mapping_round_up(vmm.device, room, &vmm.extent);
    if (code == GPS_OK)
        code = gps_ops->block_create(vmm.device, vmm.extent, &vmm.block);
    if (code == GPS_OK)
        code = mapping_place(&vmm);
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
    mapping_set_name(&vmm, record);
    int code = gps_peers_reached(record->device) == 0 ? GPS_PEER_UNSUPPORTED : GPS_OK;
    if (code == GPS_OK)
        code = gps_ops->block_import(descriptor, &vmm.block);
    if (code == GPS_OK)
        code = mapping_place(&vmm);
    if (code == GPS_OK)
        *pointer = vmm.pointer;
    return code;
}

int gps_mapping_close(uint64_t pointer) {
    struct node *node = mapping_take(pointer);
    if (!node)
        return GPS_INVALID_VALUE;
    const struct gps_mapping *vmm = &node->is;
    const int code = gps_ops->unmap(vmm->pointer, vmm->extent);
    if (code != GPS_OK) {
        mapping_insert(node);
        return code;
    }
    gps_mapping_unreserve(vmm->pointer, vmm->extent);
    gps_ops->block_release(vmm->block);
    free(node);
    return GPS_OK;
}

int gps_mapping_descriptor(uint64_t pointer, int *descriptor) {
    struct gps_mapping vmm;
    return gps_mapping_at(pointer, &vmm) ? gps_ops->block_export(vmm.block, descriptor)
                                         : GPS_INVALID_VALUE;
}

/* --- suspension --- */

static void set_block(uint64_t pointer, uint64_t block, bool evicted) {
    GPS_LOCKED(&state.lock);
    struct gps_mapping *vmm = locate(pointer);
    if (vmm) {
        vmm->block = block;
        vmm->evicted = evicted;
        vmm->borrowed = true;
    }
}

int gps_mapping_evict(uint64_t pointer) {
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

void gps_mapping_enable(int home, int accessor) {
    struct gps_mapping vmm = {.pointer = 0};
    gps_lock_take(&state.lock);
    state.peers[home] |= UINT64_C(1) << accessor;
    gps_lock_give(&state.lock);
    while (gps_mapping_next(&vmm))
        if (vmm.device == home)
            gps_ops->allow(vmm.pointer, vmm.extent, accessor, vmm.writable);
}
