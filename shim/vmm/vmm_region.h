/*
 * vmm_region.h - regions of VMM memory, which a token names and the keeper holds.
 *
 * Such a region has no handle of the driver's. Its 64 handle bytes are a token that only
 * preloaded processes understand; the driver refuses it. Its record belongs to the keeper
 * (gpushare/keeper.h), which has a descriptor of its memory. This process publishes a slot for as
 * long as it has the memory, as its creator or as an importer. When keeper and stand-by have died
 * and another keeper starts, a background thread deposits the regions that were created here again.
 * The driver gives no descriptor of imported memory: that ends with its last mapping.
 *
 * Any thread, inside a gps_scope that has entered a context, unless a comment says otherwise.
 */
#pragma once

#include "registry/registry.h"

/* A new token of this process. Needs no context. */
void gps_vmm_region_make_token(uint8_t handle[GPS_HANDLE_BYTES]);

/* Gives the memory at region->pointer (gps_mapping_create's) to the keeper under region->record,
 * which is complete but for its checksums. 0 or -errno. */
int gps_vmm_region_publish(struct gps_export *region);
/* The creator's mapping is closed: clears its slot and tells the keeper. Needs no context. */
void gps_vmm_region_end(struct gps_export *region);

/* Deposits the descriptor of a region with a keeper that is new. It stays the caller's. 0 or
 * -errno. -ENOENT: there is no such region any more. */
int gps_vmm_region_give(const struct gps_id *region, int descriptor);
/* The same. True: the keeper has the region now, also from another, or needs it no more. */
bool gps_vmm_region_return(const struct gps_id *region, int descriptor);

/* Maps a region of the keeper's into the current context, after the intent was published. Returns
 * 0, the driver's code, or -errno where the keeper does not have it any more. */
int gps_vmm_region_open(const struct gps_region_record *record, uint64_t size, uint64_t *pointer);

/* The token of the region that `pointer` lies in, or the driver's code where there is no context;
 * false: it lies in no region that an allocation of the program's became. Needs no scope. */
bool gps_vmm_region_token(uint64_t pointer, uint8_t handle[GPS_HANDLE_BYTES], int *code);

void gps_vmm_region_stop(void); /* the process ends: the driver is touched no more */
/* The process is suspended: waits until the thread does not use the driver, nor will until the
 * process is resumed. False: it still does after `timeout` ns. */
bool gps_vmm_region_await(uint64_t timeout);
void gps_vmm_region_reset(void); /* in a forked child */
