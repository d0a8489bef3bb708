/*
 * mappings.h - calls for memory that the program makes and maps itself: the driver answers them,
 * and their effects are written into the books (registry/vmm_books.h) and summed up for other
 * processes (GPS_VIA_MADE).
 *
 * No answer of the driver's is changed, but for memory that a rule gave the program: such calls are
 * refused, as for a plain allocation. Any thread; none needs a scope. The codes are the driver's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gate/gate.h"
#include "ipc/reclaim.h"
#include "registry/vmm_books.h"

typedef int gps_handle_fn(uint64_t handle);
typedef int gps_range_fn(uint64_t pointer, uint64_t size);

/* The code of the driver's call that makes memory: `call`, which in a process that merges is made
 * once more where it found no memory (ipc/reclaim.h). */
#define GPS_MAPPINGS_CODE(call) GPS_WITH_RECLAIM_IF(gps_gate_active, call)

/* --- after the driver's success --- */

void gps_mappings_reserved(uint64_t pointer, uint64_t size);
/* Offers memory that the program has made to the rules. Returns the handle that the program gets
 * instead, with *made as taken; the same handle: no rule takes the memory. */
uint64_t gps_mappings_take(struct gps_vmm_memory *made, const struct gps_block_like *like);
/* Memory was made by create, by import, or as an object of multicast: *made without trace. */
void gps_mappings_made(struct gps_vmm_memory made);
/* The same for memory that came by a descriptor. */
void gps_mappings_imported(struct gps_vmm_memory made, int descriptor);
void gps_mappings_exported(uint64_t handle, int descriptor);
/* The same for a handle that is no descriptor. */
void gps_mappings_exported_otherwise(void);
/* Memory of another interface's, or process's, is mapped. */
void gps_mappings_held_by_dma_buf(void);
void gps_mappings_external(void);
/* The same by a descriptor that becomes the driver's. */
struct gps_external {
    int (*call)(const struct gps_external *import);
    int descriptor;
};
int gps_mappings_import_external(const struct gps_external *import);
/* Returns the program's handle. */
uint64_t gps_mappings_retained(uint64_t handle);
void gps_mappings_bound(uint64_t handle);
void gps_mappings_bound_at(uint64_t pointer);

/* --- memory that is made so that it can have tokens (ipc/token.h) --- */

/* Whether the option is on. */
bool gps_mappings_have_tokens(void);
/* Whether memory has POSIX_FD handles that the program did not ask for, and is not to see. */
bool gps_mappings_is_passable(uint64_t handle);
bool gps_mappings_is_passable_at(uint64_t address);

/* --- after the driver's refusal: a report names a certain cause --- */

/* Memory was not made: *asked has size, device and types. */
void gps_mappings_not_made(const struct gps_vmm_memory *asked, int code);
void gps_mappings_not_exported(uint64_t handle, uint32_t type, int code);
void gps_mappings_not_retained(uint64_t pointer, int code);
/* By a descriptor, as the program passed it: memory, or a pool. */
void gps_mappings_not_imported(const void *shared, int code);
/* Before the call: it has no place for the imported handle. */
void gps_mappings_no_output(void);
/* Any call for such memory, or for pools, was refused: an audit reports it, if none of these has
 * told the cause. `nowhere`: the call had no place for its result. */
void gps_mappings_refused(bool nowhere, int code);

/* --- a handle or a range of the program's, which a merge rule may have taken ---
 *
 * No driver gets a number of ours: a card's driver reads it as an address, and the process dies
 * (H200, driver 580, 2026-11-28). For one whose memory is gone it gets 0, and its answer counts. */

bool gps_mappings_is_taken(uint64_t handle);
/* The handle that the driver may get: the same, or 0 for a number of ours. */
uint64_t gps_mappings_unless_taken(uint64_t handle);
/* Before the memory is given to a handle of these types (0: of any), to an array or an object of
 * multicast. With GPS_OK the driver is to be called with *given: its own handle, or 0 if the memory
 * cannot be given so. */
int gps_mappings_give(uint64_t handle, uint32_t types, uint64_t *given);
/* The same for a range. */
int gps_mappings_give_range(uint64_t pointer, uint64_t size);
/* The properties that the program asked for. False: the driver knows them. */
bool gps_mappings_like(uint64_t handle, struct gps_block_like *like);
/* The program asks for the handle of an address. False: the driver is to be asked. */
bool gps_mappings_retain(uint64_t pointer, uint64_t *handle);

int gps_mappings_release(uint64_t handle, gps_handle_fn *release);
int gps_mappings_unreserve(uint64_t pointer, uint64_t size, gps_range_fn *unreserve);
int gps_mappings_unmap(uint64_t pointer, uint64_t size, gps_range_fn *unmap);

/* A front end embeds this struct in its own with the rest of the arguments. */
struct gps_map {
    int (*call)(const struct gps_map *map, uint64_t handle); /* the driver's */
    uint64_t pointer, size, offset, handle;
    bool plain; /* without flags */
};
int gps_mappings_map(const struct gps_map *map);

/* Gives access. A front end embeds this struct in its own with the rest of the arguments. */
struct gps_allow {
    int (*call)(const struct gps_allow *allow, uint64_t pointer, uint64_t size);
    uint64_t pointer, size;
    int device; /* named alone, for reads and writes; -1: any other access */
};
int gps_mappings_allow(const struct gps_allow *allow);
/* For one device (its ordinal), or for the host (GPS_VMM_HOST); after the driver's success. */
void gps_mappings_allowed(uint64_t pointer, uint64_t size, unsigned device, bool reads,
                          bool writes);
