/*
 * created.h - memory that the program makes by cuMemCreate and a merge rule takes.
 *
 * The program has a handle of ours, a number that no driver gives. Under it lies one allocation of
 * the driver's with the program's own properties. While that is mapped once, and only its own
 * device may write it, the mapping is an area (area.h). Its blocks have no memory of their own: the
 * driver maps and protects an allocation as a whole. When one of them has been quiet for long
 * enough, the allocation is parted: each block gets memory of its own with the same bytes, in a
 * moment in which the device is idle, and the driver's allocation is released. From then on the
 * blocks are as those of other areas.
 *
 * Whatever needs one allocation again makes it whole, with its bytes and for good: an export, a
 * second mapping, access for another device or for less than reads and writes, an array, an object
 * of multicast, a dma-buf. The program's calls are answered as the driver would.
 *
 * The table is under the lock of area.h. A thread that maps or unmaps has gps_swap_lock, too. Any
 * thread, without a lock, and no scope, unless said. The codes are the driver's.
 */
#pragma once

#include "allocation.h"
#include "driver/driver_ops.h"

/* A larger allocation is left to the driver: the program would wait while it is parted. */
#define GPS_CREATED_MOST (UINT64_C(1) << 30)

/* Whether a handle is one of ours, of memory that lives or once did. */
static inline bool gps_created_is(uint64_t handle) {
    return handle >> 48 == 0x9750;
}
/* Whether there ever was such memory: without, no call has to look for it. */
bool gps_created_any(void);

/* The driver has made `memory` for the program: *handle is what the program gets. False: the memory
 * is left to the driver. Inside a gps_scope. */
bool gps_created_make(const struct gps_merge_request *request, const struct gps_block_like *like,
                      uint64_t memory, uint64_t *handle);

/* From here on functions want one of our handles. False: it is gone, or without a reference. */
bool gps_created_release(uint64_t handle);
bool gps_created_like(uint64_t handle, struct gps_block_like *like);
/* Makes the memory one allocation for good. *memory is the driver's handle. With GPS_OK and *memory
 * 0 there is none that may be given away by a handle of these types (0: of any). */
int gps_created_keep(uint64_t handle, uint32_t types, uint64_t *memory);
/* `map`: the driver's call, with the driver's handle. */
typedef int gps_created_map_fn(void *arg, uint64_t memory);
struct gps_created_map {
    gps_created_map_fn *call;
    void *arg;
    uint64_t handle, pointer, size;
    bool plain; /* from its first byte on, and without flags */
};
bool gps_created_map(const struct gps_created_map *map, int *code);

/* The same for ranges of addresses. False: no such memory is there. */
bool gps_created_retain(uint64_t pointer, uint64_t *handle);
/* The driver gave this handle of an address, and counts it: the program's handle of that memory. */
uint64_t gps_created_retained(uint64_t memory);
typedef int gps_created_range_fn(uint64_t pointer, uint64_t size, const void *arg);
bool gps_created_unmap(uint64_t pointer, uint64_t size, gps_created_range_fn *unmap,
                       const void *arg, int *code);
/* `device` alone may now access the range; -1: it is otherwise. `allow` is the driver's call. */
bool gps_created_allow(uint64_t pointer, uint64_t size, int device, gps_created_range_fn *allow,
                       const void *arg, int *code);
/* The range becomes whole allocations for good. */
int gps_created_keep_range(uint64_t pointer, uint64_t size);

/* Whether an area, by its serial, is parted: *as is what the driver said of the mapping before. */
bool gps_created_parted(uint64_t address, uint64_t serial, struct gps_mapped_as *as);

/* --- for the merger --- */

/* Whether the area is still one allocation: then it is parted, and its blocks can merge later. */
bool gps_created_is_to_part(uint64_t address, uint64_t serial);

/* As the functions of layout.h: the next one that is to be parted, of all; memory for its blocks;
 * the exchange; and its end. */
bool gps_parting_next(uint64_t only, bool again);
bool gps_parting_copy(void);
void gps_parting_exchange(void);
void gps_parting_end(void);
