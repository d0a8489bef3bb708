/*
 * mapping.h - memory of cuMemCreate that the program has as if it were cudaMalloc's.
 *
 * Owns every such mapping of this process: what the program's allocation became (backing = vmm),
 * and what was opened of others. A mapping is found by any address inside it. It belongs to no
 * context and stays when its context goes: the end of the allocation unmaps it. Devices
 * to which the program gives peer access reach it. In a forked child nothing of it is valid; it is
 * forgotten.
 *
 * Call inside a gps_scope that has entered a context, where not said otherwise. The codes are the
 * driver's. The table's lock is not held across driver calls.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/region.h"

struct gps_mapping {
    uint64_t pointer; /* where it begins, as the program has it */
    uint64_t size;    /* as the program asked */
    uint64_t extent;  /* mapped; whole granules */
    uint64_t block;   /* the driver's */
    int device;       /* ordinal of the one it lies on */
    bool writable;
    bool created;         /* by this process; else it is another's */
    struct gps_id region; /* zero: it is private */
    uint8_t handle[GPS_HANDLE_BYTES];
};

/* On the current device; created, writable. *extent: its size in whole granules. */
int gps_mapping_create(uint64_t size, uint64_t *pointer, uint64_t *extent);
/* Maps another's block, for the current device. It lies on the device of this UUID; if the current
 * one is another, it must reach it (GPS_PEER_UNSUPPORTED). */
int gps_mapping_open(int descriptor, const struct gps_region_record *record, uint64_t size,
                     uint64_t *pointer);
/* Waits for the device, then unmaps and lets go. */
int gps_mapping_close(uint64_t pointer);
/* The same by the program's order: as a free it is refused where its context is lost. */
int gps_mapping_free(uint64_t pointer);

/* A descriptor of the block, close-on-exec, the caller's. No context needed. */
int gps_mapping_descriptor(uint64_t pointer, int *descriptor);
/* This mapping is a region now. */
void gps_mapping_name(uint64_t pointer, const struct gps_region_record *record);

/* The mapping that `address` lies in. Lock-free when there is none at all. No scope needed. */
bool gps_mapping_at(uint64_t address, struct gps_mapping *found);

/* Gives a mapped range access: memory of device `home` for the current context's device, and for
 * those to which the program opened home. */
int gps_mapping_allow(uint64_t pointer, uint64_t size, int home, bool writable);
/* The program lets the current context's device reach the memory of `device`. */
void gps_mapping_enable_peer(int device);

/* Whether this process has the region that it created. No scope needed. */
bool gps_mapping_has(const struct gps_id *region);

/* fn gets a copy of each. No scope needed. */
void gps_mapping_each(void (*fn)(void *arg, const struct gps_mapping *vmm), void *arg);

void gps_mapping_reset(void); /* in a forked child */
