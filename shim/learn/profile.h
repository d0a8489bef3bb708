/*
 * profile.h - what a process that learns knows of an allocation, and its lines in the report.
 *
 * The allocation is an area (merge/area.h) in the driver's own memory, so no block of it is ever
 * swapped. Its line has its facts and times (in milliseconds since the process began), then
 *
 *     "full": [bytes, constant since, changed, rewritten]    of the blocks that copies filled
 *     "all": the same                                        of all blocks
 *     "blocks": [[bytes, filled by copies, hash], ...]
 *     "rule": [line, quiet, writes, written, was quiet, kernel]   where canary.h has a rule for it
 *
 * The functions want the lock of area.h.
 */
#pragma once

#include "merge/area.h"
#include "util/text.h"

#define GPS_PROFILE_LINE (1u << 20) /* 600 GiB, in the largest blocks */

#define GPS_PROFILE_KERNEL 128u /* room for a name, which is cut to fit */

enum gps_profile_kind {
    GPS_PROFILE_ALLOCATED,
    GPS_PROFILE_POOL,    /* it has no blocks, for it must not be looked at */
    GPS_PROFILE_CREATED, /* by cuMemCreate, and mapped */
};

struct gps_profile {
    uint64_t born, freed; /* freed: 0: it is there */
    long thread;
    enum gps_profile_kind kind;
    bool dirty; /* it is not in the report as it is now */
    struct gps_area *next;
    const struct gps_rule *rule; /* that would merge it (canary.h); the rest is nothing without */
    bool quiet;                  /* some of it would have been merged */
    unsigned writes;             /* so often something but a call changed such a block then */
    uint64_t written, was_quiet; /* the first time; for how long it had been quiet */
    char kernel[GPS_PROFILE_KERNEL], writer[GPS_PROFILE_KERNEL]; /* the last that was launched with
                                                                    a pointer to it; at that time */
    struct gps_progress {
        uint64_t stable;             /* all that was written by calls until then was seen */
        unsigned changed, rewritten; /* since it was full: by kernels; after calls that wrote it */
        bool full;                   /* its hash is of a full block */
    } progress[];                    /* of the block that begins at each 2 MiB */
};

static inline struct gps_profile *gps_profile_of(const struct gps_area *area) {
    return area->notes;
}

static inline struct gps_progress *gps_profile_progress(const struct gps_area *area,
                                                        const struct gps_block *block) {
    return &gps_profile_of(area)->progress[block->at / GPS_MERGE_SMALL];
}

/* Makes an allocation's area in the current context, for the call under way. NULL: no memory. */
struct gps_area *gps_profile_new(uint64_t pointer, uint64_t size, enum gps_profile_kind kind);
void gps_profile_free(struct gps_area *area);

/* The part of a block that belongs to the allocation. */
uint64_t gps_profile_bytes(const struct gps_area *area, const struct gps_block *block);

/* Copies from the host have filled all of it. */
static inline bool gps_profile_is_full(const struct gps_block *block) {
    return !~block->filled && !block->excluded;
}

/* A call writes a range. Blocks that no call has written are cut where a copy from the host begins
 * and ends, as a merge rule with quiet = 0 would cut them. */
void gps_profile_write(struct gps_area *area, uint64_t address, uint64_t size, bool upload,
                       bool captured);
/* A block had these bytes when it was hashed, which began at `begun`. With `stable` it was hashed
 * so soon after a copy that no kernel came between. */
void gps_profile_note(struct gps_area *area, struct gps_block *block, const struct gps_hash *hash,
                      uint64_t begun, bool stable);

/* `began`: the process. */
void gps_profile_line(const struct gps_area *area, uint64_t began, struct gps_text *text);
/* A line of the process: until when all was looked at. */
void gps_profile_process_line(uint64_t began, uint64_t looked, struct gps_text *text);
/* Another: so many bytes it has made by cuMemCreate, and so many of those are or were watched. */
void gps_profile_created_line(uint64_t made, uint64_t watched, struct gps_text *text);
/* Another: an allocation of it failed for want of memory. */
void gps_profile_lacking_line(struct gps_text *text);
