/*
 * mapping.h - memory of cuMemCreate that the program has as if it were cudaMalloc's.
 *
 * The module owns every such mapping of this process: those that an allocation of the program's
 * became (backing = vmm), and those of memory that other processes made. A mapping is found by any
 * address inside it. It belongs to no context, and outlives the one that it was made in; the end of
 * the allocation unmaps it. Devices to which the program gives peer access reach it. In a forked
 * child no mapping is valid, and all are forgotten.
 *
 * The functions are called inside a gps_scope that has entered a context, unless their comment says
 * otherwise. The codes are the driver's. The table's lock is not held across driver calls.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "directory/record.h"

struct gps_mapping {
    uint64_t pointer; /* where it begins, as the program has it */
    uint64_t size;    /* as the program asked */
    uint64_t extent;  /* mapped; whole granules */
    uint64_t block;   /* the driver's */
    uint64_t serial;  /* no other mapping has it; from 1 */
    int device;       /* ordinal of the device that it lies on */
    bool writable;
    bool created;         /* created by this process; else by another */
    int accessor;         /* ordinal of the device that has access */
    bool evicted;         /* a suspension evicted its block; its addresses are kept */
    bool borrowed;        /* its block came back from the keeper: it gives no descriptor */
    struct gps_id region; /* zero: it is private */
    uint8_t handle[GPS_HANDLE_BYTES];
};

/* Whether the mapping is a region. */
static inline bool gps_mapping_is_shared(const struct gps_mapping *vmm) {
    static const struct gps_id none;
    return !gps_id_equal(&vmm->region, &none);
}

/* Reserves addresses for `extent` bytes, and some behind them that stay unmapped, so that an access
 * past the end of an allocation does not reach the next one. */
int gps_mapping_reserve(uint64_t extent, uint64_t *pointer);
void gps_mapping_unreserve(uint64_t pointer, uint64_t extent);
/* Makes memory on the current device that may be written: `size` bytes for the program, in `room`
 * bytes. *extent is `room` in whole granules. */
int gps_mapping_create(uint64_t size, uint64_t room, uint64_t *pointer, uint64_t *extent);
/* Maps the block of another process for the current device. The block lies on the device that the
 * record names; a current device that cannot reach that one is an error (GPS_PEER_UNSUPPORTED). */
int gps_mapping_open(int descriptor, const struct gps_region_record *record, uint64_t size,
                     uint64_t *pointer);
/* Unmaps the block and releases it. The caller has waited for the device: nothing uses it. */
int gps_mapping_close(uint64_t pointer);

/* A descriptor of the block, close-on-exec, the caller's to close. It needs no context. */
int gps_mapping_descriptor(uint64_t pointer, int *descriptor);
/* For memory that other processes have, too, while all calls of the program wait. The first
 * releases the block and keeps the addresses; the second maps it there again, from a descriptor
 * that stays the caller's. They need no context. */
int gps_mapping_evict(uint64_t pointer);
int gps_mapping_take_again(uint64_t pointer, int descriptor);
/* This mapping is a region now. */
void gps_mapping_name(uint64_t pointer, const struct gps_region_record *record);

/* The mapping of `address`. Where there is none at all it takes no lock. It needs no scope. */
bool gps_mapping_find(uint64_t address, struct gps_mapping *found);
extern bool gps_mapping_exists;
static inline bool gps_mapping_any(void) {
    return __builtin_expect(__atomic_load_n(&gps_mapping_exists, __ATOMIC_RELAXED), 0);
}
static inline bool gps_mapping_at(uint64_t address, struct gps_mapping *found) {
    return gps_mapping_any() && gps_mapping_find(address, found);
}

/* Gives a mapped range access: memory of device `home` for the current context's device, and for
 * those that gps_mapping_enable named. */
int gps_mapping_allow(uint64_t pointer, uint64_t size, int home, bool writable);
/* The ordinal that a device has in this process; -1: the process does not see the device. */
int gps_mapping_ordinal(const uint8_t wanted[GPS_UUID_BYTES]);
/* Maps a block at the address, and gives it access as gps_mapping_allow. */
int gps_mapping_map(uint64_t pointer, uint64_t size, uint64_t block, int home, bool writable);
/* No other device has access to one of a higher ordinal. */
enum { GPS_MAPPING_DEVICES = 64 };
/* Another device may use memory of `home`, mapped now or later. Both are below GPS_MAPPING_DEVICES.
 * Inside a gps_scope. */
void gps_mapping_enable(int home, int accessor);

/* Whether a device may touch memory of device `home`. It needs no scope. */
bool gps_mapping_reaches(int device, int home);

/* Whether this process still has a region that it created. It needs no scope. */
bool gps_mapping_has(const struct gps_id *region);

/* A copy of the next mapping by address; begin with zeros. False: no more. It needs no scope. */
bool gps_mapping_next(struct gps_mapping *vmm);
