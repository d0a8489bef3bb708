/*
 * address.h - the memory at an address, as the program is to see it.
 *
 * The tables are searched in this order, and the first that has the address gives the answer:
 *
 * 1. the padding behind memory of a rule (registry/padding.h, merge/area.h);
 * 2. areas (merge/area.h): memory that a merge rule took; 3. mirrors (vmm/mirror.h): the run that a
 * token has open, or else addresses without memory; 4. mappings of backing = vmm (vmm/mapping.h);
 * 5. allocations, and then imports (registry/registry.h), by where the driver has them begin.
 *
 * For all other memory the driver's answer holds, also for memory that the program has freed and
 * other processes hold (ipc/deferred.h), or that it maps itself (registry/vmm_books.h). Launches,
 * copies and fills search no table, but compare twice with the spans of 1 and 2 (launches.h).
 *
 * Areas and mirrors are locked while the driver maps, so there is no one lock for all. An answer is
 * looked up until its serial comes twice, so that two tables agreed at one moment. Any thread; no
 * scope, and no lock.
 */
#pragma once

#include "driver/driver_ops.h"

enum gps_place_kind {
    GPS_PLACE_OTHER,   /* the driver's answer holds */
    GPS_PLACE_EMPTY,   /* of 1 and 3: to the program nothing is there */
    GPS_PLACE_CREATED, /* of 2: the program has made the memory, and maps it itself */
    GPS_PLACE_MERGED,  /* of 2: an allocation to the program, as all kinds below */
    GPS_PLACE_OPENED,  /* of 3 */
    GPS_PLACE_MAPPED,  /* of 4 */
    GPS_PLACE_KNOWN,   /* of 5 */
};

struct gps_place {
    enum gps_place_kind kind;
    uint64_t base, size;     /* size 0: OTHER or EMPTY */
    uint64_t extent;         /* the bytes that are mapped for it */
    uint64_t context;        /* but of CREATED and KNOWN */
    uint64_t serial;         /* of 2 to 4: nothing else has it */
    int device;              /* of 2; else -1 */
    bool has_handles;        /* of its own, as a plain allocation */
    bool synced;             /* SYNC_MEMOPS, as the program has it */
    bool parted;             /* CREATED: each of its blocks is a mapping to the driver */
    bool open;               /* if parted: its device may read and write it */
    struct gps_mapped_as as; /* if parted */
};

struct gps_place gps_at(uint64_t address);
/* The same where by the driver the memory of the address begins at `base` (0: there is none). */
struct gps_place gps_at_base(uint64_t address, uint64_t base);

/* Whether the driver knows it piece by piece alone. */
static inline bool gps_place_is_pieced(const struct gps_place *at) {
    return at->kind == GPS_PLACE_MERGED || at->kind == GPS_PLACE_OPENED;
}
/* Whether the memory is an allocation to the program, while the driver takes it for memory that the
 * program maps itself. The driver refuses calls for such memory on a plain allocation. */
static inline bool gps_place_is_allocated(struct gps_place at) {
    return at.kind != GPS_PLACE_OTHER && at.kind != GPS_PLACE_CREATED;
}
/* Where a free or a close takes any address of the memory: where that begins. */
bool gps_address_is_inside(uint64_t address, uint64_t *base);
/* The address for the driver: behind the end of a rule's memory, one without memory. */
uint64_t gps_address_for_driver(uint64_t address);
