/*
 * pool_books.h - the books of memory pools that the program makes or imports, and of the pointers
 * that it gets from them by name or from another process. Memory of the device's own pool is the
 * driver's alone, and not in them.
 *
 * As in vmm_books.h, what a call makes is recorded after success, and what it ends is taken before
 * the call, and added again if it fails. Any thread; no scope. A forked child finds them empty.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/region.h"

struct gps_pool {
    uint64_t pool;
    uint64_t serial; /* no other pool has it; set by the books */
    int device;      /* ordinal; -1: memory of the host, or not known */
    uint32_t types;  /* of handles that can be exported, a CUmemAllocationHandleType */
    bool imported;
    uint32_t exporter; /* its pid, of an imported pool; 0: not known */
    uint32_t pointers; /* that are alive; set by the books */
    uint32_t made;     /* trace */
};

struct gps_pool_pointer {
    uint64_t pointer, size; /* 0: imported, and not known */
    uint64_t pool, serial;  /* its pool; the serial is set by the books, 0: not in them */
    uint64_t context;       /* the pointer ends with it */
    uint32_t era;           /* of registry.h */
    uint32_t imports;       /* 0: allocated here. The driver does not count further ones */
    bool exported;
    struct gps_id id;     /* GPS_VIA_POOL; of its export, or as published in `slot` */
    unsigned slot;        /* in the directory, where it is imported; GPS_NO_SLOT */
    uint32_t made;        /* trace */
    uint32_t exported_at; /* the same */
};

/* Replaces a pool of the same handle, whose end was not seen. */
void gps_pool_add(const struct gps_pool *pool);
bool gps_pool_take(uint64_t pool, struct gps_pool *taken);
bool gps_pool_find(uint64_t pool, struct gps_pool *found);

/* True: the pointer was imported before, and is counted. */
bool gps_pool_pointer_add(const struct gps_pool_pointer *pointer);
void gps_pool_pointer_exported(uint64_t pointer, const struct gps_id *id, uint32_t trace);
/* The slot by which others see an imported pointer. False: it is not in the books, or has one. */
bool gps_pool_pointer_set_slot(uint64_t pointer, const struct gps_id *id, unsigned slot);
/* Whether a pointer that is alive was exported under this name. It looks at all of them. */
bool gps_pool_pointer_has(const struct gps_id *id);
bool gps_pool_pointer_find(uint64_t pointer, struct gps_pool_pointer *found);
/* Costs one load in a process that never had a pointer. */
bool gps_pool_pointer_take(uint64_t pointer, struct gps_pool_pointer *taken);
/* A pointer of a pool, which may be taken already. It looks at all of them. */
bool gps_pool_pointer_of(const struct gps_pool *pool, struct gps_pool_pointer *found);
/* Takes pointers of a context that are older than the era: at most `max`. Returns how many. */
unsigned gps_pool_pointer_take_of(uint64_t context, uint32_t era, struct gps_pool_pointer *taken,
                                  unsigned max);
