/*
 * vmm_region.h - regions of VMM memory: named by a token, kept by the keeper.
 *
 * Such a region has no handle of the driver's. Its 64 handle bytes are a token, drawn at random,
 * that only preloaded processes understand; the driver refuses it. Its record belongs to the keeper
 * (gpushare/keeper.h), which has a descriptor of its memory; this process publishes a slot
 * for as long as it has the memory, as its creator or as an importer. Should the keeper die and
 * another start, a thread here hands it the descriptors of all that this process has again
 * (parked_descriptors.h: also of what it imported).
 *
 * Call inside a gps_scope that has entered a context, where not said otherwise.
 */
#ifndef GPS_VMM_REGION_H
#define GPS_VMM_REGION_H

#include "registry/registry.h"

/* Whether handle bytes are a token. Needs no scope. */
bool gps_vmm_region_is_token(const uint8_t handle[GPS_HANDLE_BYTES]);
void gps_vmm_region_make_token(uint8_t handle[GPS_HANDLE_BYTES]);

/* Gives the memory at region->pointer (gps_mapping_create's) to the keeper under region->record,
 * which is complete but for its checksums. 0 or -errno. */
int gps_vmm_region_publish(struct gps_export *region);
/* This process has it no longer: unmaps what is still mapped (region->pointer is not 0). Needs no
 * context. */
void gps_vmm_region_end(struct gps_export *region);

/* An importer has it no longer. Needs no context. */
void gps_vmm_region_released(const struct gps_id *region);

/* Maps a kept region into the current context; the caller has published its intent. 0, the driver's
 * code, or -errno: it is not kept any more. */
int gps_vmm_region_open(const struct gps_region_record *record, uint64_t size, uint64_t *pointer);

/* The token of whatever region `pointer` lies in; false: it lies in none. Needs no scope. */
bool gps_vmm_region_token(uint64_t pointer, uint8_t handle[GPS_HANDLE_BYTES]);

void gps_vmm_region_stop(void);  /* the process ends: the driver is touched no more */
void gps_vmm_region_reset(void); /* in a forked child */

#endif
