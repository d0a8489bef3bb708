/*
 * mirror.h - memory of other processes' own cuMemCreate that is mapped here, by tokens.
 *
 * For each range of addresses that an exporter has reserved, and of which a part is open here,
 * there is one mirror: a range of the same size, in which each block of the exporter's lies at the
 * same distance from the beginning as there. So each block is imported once, however many opens
 * there are, and addresses of different opens differ as in the exporter. A block is counted by the
 * opens whose run it is in, and unmapped with the last one's close. Where the exporter has mapped
 * other memory at a place whose old memory is open here, another mirror of that range begins.
 *
 * The mappings belong to no context. In a forked child no mapping is valid, and all are forgotten.
 * Called inside a gps_scope that has entered a context, unless said otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/region.h"

/* Maps a token's run. 0 and the pointer, a code of the driver's, or -errno. -ENOENT: the exporter
 * lacks the run now. -ECONNREFUSED: the exporter has ended. -ETIMEDOUT: it does not answer. */
int gps_mirror_open(const struct gps_region_record *record, uint64_t *pointer);
/* Another token had opened the pointer already, and counts this open, which ends with it. */
void gps_mirror_opened_again(uint64_t pointer, const struct gps_id *token);
/* Ends an open. The caller has waited for the device, so nothing uses the memory. */
int gps_mirror_close(uint64_t pointer, const struct gps_id *token);

/* The run that a token has open at an address of a mirror; of several the longest. */
struct gps_mirrored {
    uint64_t pointer, size; /* as it was opened; 0: nothing is open there */
    uint64_t serial;        /* no other open has it; from 1 */
    bool synced;            /* SYNC_MEMOPS, as the program has set it */
};
/* Costs one load where there is no mirror. Needs no scope. */
bool gps_mirror_at(uint64_t address, struct gps_mirrored *found);
void gps_mirror_set_synced(uint64_t pointer, bool synced);

/* Whether anything is open here. */
bool gps_mirror_any(void);
/* Whether a range begins in memory that a token has open, or behind it in its mirror, and goes on
 * where none is open, from *end on. `token`: one that is open before that. Needs no scope. */
bool gps_mirror_ends(uint64_t address, uint64_t size, uint64_t *end, struct gps_id *token);
