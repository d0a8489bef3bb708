#include "address.h"

#include "driver/scope.h"
#include "launches.h"
#include "merge/created.h"
#include "registry/registry.h"
#include "vmm/mapping.h"
#include "vmm/mirror.h"

#define NOWHERE 1 /* nothing is mapped in the first page */

/* Each table counts its serials from 1. */
#define OPENED (UINT64_C(1) << 40)
#define MAPPED (UINT64_C(2) << 40)

static bool is_behind(uint64_t address, struct gps_place *at) {
    if (!gps_read_is_refused(address, 1))
        return false;
    *at = (struct gps_place){.kind = GPS_PLACE_EMPTY, .device = -1};
    return true;
}

static bool is_area(uint64_t address, struct gps_place *at) {
    struct gps_area area;
    if (!gps_merge_find(address, &area))
        return false;
    *at = (struct gps_place){.kind = area.created ? GPS_PLACE_CREATED : GPS_PLACE_MERGED,
                             .base = area.pointer,
                             .size = area.size,
                             .extent = area.extent,
                             .context = area.context,
                             .serial = area.serial,
                             .device = area.device,
                             .synced = area.synced};
    at->parted = area.created && gps_created_parted(address, area.serial, &at->as);
    at->open = at->parted && area.open;
    return true;
}

static uint64_t context_of_import(uint64_t pointer) {
    struct gps_import import;
    return gps_registry_import_at(pointer, &import) ? import.context : 0;
}

/* Memory opened by a token looks like memory opened by a handle of the driver's. */
static bool is_mirrored(uint64_t address, struct gps_place *at) {
    struct gps_mirrored run;
    if (!gps_mirror_at(address, &run))
        return false;
    *at = (struct gps_place){.kind = run.size ? GPS_PLACE_OPENED : GPS_PLACE_EMPTY,
                             .base = run.pointer,
                             .size = run.size,
                             .extent = run.size,
                             .context = context_of_import(run.pointer),
                             .serial = OPENED + run.serial,
                             .device = -1,
                             .synced = run.synced};
    return true;
}

/* An import that the program has opened itself has no handle, as with the driver alone. */
static bool place_is_mapped(uint64_t address, struct gps_place *at) {
    struct gps_mapping mapping;
    struct gps_alloc alloc;
    if (!gps_mapping_at(address, &mapping))
        return false;
    const bool own = gps_registry_find(mapping.pointer, &alloc);
    *at = (struct gps_place){.kind = GPS_PLACE_MAPPED,
                             .base = mapping.pointer,
                             .size = mapping.size,
                             .extent = mapping.extent,
                             .context = own ? alloc.context : context_of_import(mapping.pointer),
                             .serial = MAPPED + mapping.serial,
                             .device = -1,
                             .has_handles = own};
    return true;
}

static struct gps_place place_look_up(uint64_t address) {
    struct gps_place at;
    return is_behind(address, &at) || is_area(address, &at) || is_mirrored(address, &at) ||
                   place_is_mapped(address, &at)
               ? at
               : (struct gps_place){.kind = GPS_PLACE_OTHER, .device = -1};
}

struct gps_place gps_at(uint64_t address) {
    struct gps_place at = place_look_up(address), again;
    while (at.serial && (again = place_look_up(address)).serial != at.serial)
        at = again;
    return at;
}

/* The size is the program's: a rule may have allocated more, and a handle opens a whole block. */
struct gps_place gps_at_base(uint64_t address, uint64_t base) {
    struct gps_place at = gps_at(address);
    struct gps_alloc alloc;
    struct gps_import import;
    if (at.size || !base)
        return at;
    const bool own = gps_registry_find(base, &alloc) && alloc.kind != GPS_ALLOC_PLAIN;
    if (own || (gps_registry_import_at(base, &import) && import.size && !import.vmm))
        at = (struct gps_place){.kind = GPS_PLACE_KNOWN,
                                .base = base,
                                .size = own ? alloc.size : import.size,
                                .device = -1,
                                .has_handles = own};
    return at;
}

bool gps_address_is_inside(uint64_t address, uint64_t *base) {
    uint64_t size;
    GPS_DRIVER_SCOPE();
    return gps_ops->by_range && gps_ops->range(address, base, &size) == GPS_OK;
}

uint64_t gps_address_for_driver(uint64_t address) {
    return gps_read_is_refused(address, 1) ? NOWHERE : address;
}
