/*
 * address.h - what lies at an address, as the program is to see it.
 *
 * The tables are asked in this order, and the first that has the address answers:
 *
 * 1. the padding behind memory of a rule (registry/padding.h, merge/area.h);
 * 2. areas (merge/area.h): what a merge rule took;
 * 3. mirrors (vmm/mirror.h): the run that a token has open, or else addresses without memory;
 * 4. mappings of backing = vmm (vmm/mapping.h);
 * 5. allocations, and then imports (registry/registry.h), by where the driver has them begin.
 *
 * All else is as the driver says: what the program has freed and others hold (ipc/deferred.h), and
 * what it maps itself (registry/vmm_books.h), too. Launches, copies and fills ask no table, but the
 * spans of 1 and 2 (launches.h): they know ranges, by two compares.
 *
 * Areas and mirrors are locked while the driver maps, so there is no one lock for all. An answer
 * that two tables give together is asked for until its serial comes twice, so it held for one
 * moment. Any thread; no scope, and no lock.
 */
#pragma once

#include "driver/driver_ops.h"

enum gps_place_kind {
    GPS_PLACE_OTHER,   /* the driver's answer holds */
    GPS_PLACE_EMPTY,   /* of 1 and 3: to the program nothing is there */
    GPS_PLACE_CREATED, /* of 2: the program has made it, and maps it itself */
    GPS_PLACE_MERGED,  /* of 2: it is an allocation to the program; and so are the rest */
    GPS_PLACE_OPENED,  /* of 3 */
    GPS_PLACE_MAPPED,  /* of 4 */
    GPS_PLACE_KNOWN,   /* of 5 */
};

struct gps_place {
    enum gps_place_kind kind;
    uint64_t base, size;     /* size 0: OTHER or EMPTY */
    uint64_t extent;         /* what is mapped for it */
    uint64_t context;        /* but of CREATED and KNOWN */
    uint64_t serial;         /* of 2 to 4: nothing else has it */
    int device;              /* of 2; else -1 */
    bool has_handles;        /* of its own, as what is allocated plainly */
    bool synced;             /* SYNC_MEMOPS, as the program has it */
    bool parted;             /* CREATED: each of its blocks is a mapping to the driver */
    bool open;               /* if parted: its device may read and write it */
    struct gps_mapped_as as; /* if parted */
};

struct gps_place gps_at(uint64_t address);
/* The same where the driver has the memory of the address begin at `base` (0: it has none). */
struct gps_place gps_at_base(uint64_t address, uint64_t base);

/* Whether the driver knows it piece by piece alone. */
static inline bool gps_place_is_pieced(const struct gps_place *at) {
    return at->kind == GPS_PLACE_MERGED || at->kind == GPS_PLACE_OPENED;
}
/* Whether the driver would take it for memory that the program maps itself. It refuses the calls
 * that are for such memory where they name what is allocated plainly. */
static inline bool gps_place_is_allocated(struct gps_place at) {
    return at.kind != GPS_PLACE_OTHER && at.kind != GPS_PLACE_CREATED;
}
/* Where a free or a close takes any address of the memory: where that begins. */
bool gps_address_is_inside(uint64_t address, uint64_t *base);
/* What the driver is asked about in place of an address: behind the end of memory of a rule an
 * address without memory stands for all of that. */
uint64_t gps_address_for_driver(uint64_t address);
