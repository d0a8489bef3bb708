/* passable.c - memory of which a descriptor can be made; see token.h. */
#include "merge/area.h"
#include "registry/vmm_books.h"
#include "token.h"

static bool find_mapping(uint64_t address, struct gps_passable *found) {
    struct gps_vmm_mapping mapping;
    struct gps_vmm_memory memory;
    if (!gps_vmm_mapping_from(address, &mapping, &memory) || mapping.pointer > address ||
        !gps_vmm_is_passable(&mapping, &memory))
        return false;
    *found = (struct gps_passable){.at = mapping.pointer,
                                   .size = mapping.size,
                                   .serial = memory.serial,
                                   .handle = memory.handle,
                                   .device = memory.device};
    return gps_vmm_reservation(mapping.pointer, &found->place, &found->place_size);
}

/* Serials of areas, beside those of the books. */
#define AREAS (UINT64_C(1) << 62)

static bool find_block(uint64_t address, struct gps_passable *found) {
    unsigned first, end;
    if (!gps_area_near(address, 1))
        return false;
    GPS_AREAS_LOCKED();
    const struct gps_area *area = gps_area_at(address);
    if (!area || gps_area_merges(area) || area->freed)
        return false;
    gps_area_blocks(area, address, 1, &first, &end);
    const struct gps_block *block = &area->blocks[first];
    *found = (struct gps_passable){.at = area->pointer + block->at,
                                   .size = block->size,
                                   .serial = AREAS | area->serial,
                                   .handle = block->memory,
                                   .device = area->device,
                                   .place = area->pointer,
                                   .place_size = area->extent,
                                   .is_block = true};
    return !block->evicted;
}

bool gps_passable_at(uint64_t address, struct gps_passable *found) {
    return find_mapping(address, found) || find_block(address, found);
}
