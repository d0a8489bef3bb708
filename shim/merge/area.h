/*
 * area.h - the allocations that merge rules took, in blocks.
 *
 * An area is one allocation: a reserved range of addresses that is cut into blocks, each of which
 * is mapped for itself. A block has 32 MiB. The end of an allocation, and smaller allocations, are
 * cut into the largest powers of two that fit, down to 2 MiB, because giving access costs 30 us a
 * block, whatever its size (H200, 2026-11-22). Allocations of equal sizes are cut equally in every
 * process; layout.h cuts them anew where tensors lie.
 *
 * All areas and their blocks are under one lock. It is held while blocks are mapped and swapped, so
 * that a block has one state at a time. It is not held across calls to the keeper. Take it inside a
 * gps_scope, never inside a pass of the gate.
 */
#pragma once

#include "config/config.h"
#include "digest/digest.h"
#include "process/references.h"
#include "registry/range_tree.h"
#include "util/transition.h"

#define GPS_MERGE_SMALL (UINT64_C(2) << 20)
#define GPS_MERGE_LARGE GPS_DIGEST_MOST
/* The largest block of an area that never merges. */
#define GPS_PLAIN_LARGE (UINT64_C(256) << 20)

/* The rule of an area that no rule of the configuration took: its memory lies in blocks so that a
 * suspension can evict it (suspend = on), and never merges. */
extern const struct gps_rule gps_plain_rule;

enum gps_block_state {
    GPS_BLOCK_UNBACKED,    /* it has no memory mapped: only copies from the host have touched it */
    GPS_BLOCK_PRIVATE,     /* it has memory of its own, which the program writes as it likes */
    GPS_BLOCK_FROZEN,      /* its own memory is read-only: it is about to be merged */
    GPS_BLOCK_OFFERING,    /* as FROZEN; its memory is being offered to the keeper */
    GPS_BLOCK_UNANSWERED,  /* as FROZEN; the keeper may have its memory, for it did not answer */
    GPS_BLOCK_PROVIDED,    /* read-only; the keeper has its memory; other processes may map it */
    GPS_BLOCK_SHARED,      /* read-only; the memory is another process's */
    GPS_BLOCK_SPECULATIVE, /* as SHARED; copies have brought a part of its bytes so far */
};

/* The states that may follow each state. gps_block_set_state (block.h) changes the state, and
 * asserts this. A block that ends is UNBACKED at last; one that is cut from frozen ones begins as
 * FROZEN. */
#define GPS_BLOCK_STATES                                                                           \
    GPS_STATE_ROW(GPS_BLOCK_UNBACKED, GPS_TO(GPS_BLOCK_PRIVATE) | GPS_TO(GPS_BLOCK_FROZEN) |       \
                                          GPS_TO(GPS_BLOCK_SPECULATIVE)),                          \
        GPS_STATE_ROW(GPS_BLOCK_PRIVATE, GPS_TO(GPS_BLOCK_FROZEN) | GPS_TO(GPS_BLOCK_UNBACKED)),   \
        GPS_STATE_ROW(GPS_BLOCK_FROZEN, GPS_TO(GPS_BLOCK_PRIVATE) | GPS_TO(GPS_BLOCK_OFFERING) |   \
                                            GPS_TO(GPS_BLOCK_SHARED) |                             \
                                            GPS_TO(GPS_BLOCK_UNBACKED)),                           \
        GPS_STATE_ROW(GPS_BLOCK_OFFERING,                                                          \
                      GPS_TO(GPS_BLOCK_FROZEN) | GPS_TO(GPS_BLOCK_UNANSWERED) |                    \
                          GPS_TO(GPS_BLOCK_PROVIDED) | GPS_TO(GPS_BLOCK_PRIVATE) |                 \
                          GPS_TO(GPS_BLOCK_UNBACKED)),                                             \
        GPS_STATE_ROW(GPS_BLOCK_UNANSWERED,                                                        \
                      GPS_TO(GPS_BLOCK_OFFERING) | GPS_TO(GPS_BLOCK_SHARED) |                      \
                          GPS_TO(GPS_BLOCK_PRIVATE) | GPS_TO(GPS_BLOCK_UNBACKED)),                 \
        GPS_STATE_ROW(GPS_BLOCK_PROVIDED, GPS_TO(GPS_BLOCK_PRIVATE) | GPS_TO(GPS_BLOCK_SHARED) |   \
                                              GPS_TO(GPS_BLOCK_UNBACKED)),                         \
        GPS_STATE_ROW(GPS_BLOCK_SHARED, GPS_TO(GPS_BLOCK_PROVIDED) | GPS_TO(GPS_BLOCK_PRIVATE) |   \
                                            GPS_TO(GPS_BLOCK_UNBACKED)),                           \
        GPS_STATE_ROW(GPS_BLOCK_SPECULATIVE, GPS_TO(GPS_BLOCK_SHARED) |                            \
                                                 GPS_TO(GPS_BLOCK_PRIVATE) |                       \
                                                 GPS_TO(GPS_BLOCK_UNBACKED))

struct gps_block {
    uint64_t at, size;  /* in its area */
    uint64_t memory;    /* the driver's handle of what is mapped; not if UNBACKED */
    uint64_t made;      /* UNBACKED, SPECULATIVE: its own memory, not mapped yet; 0: overcommit */
    uint64_t made_size; /* of that: the block's, or more, if the block was cut from a larger one */
    struct gps_hash hash;
    uint64_t same_since;     /* since when it has this hash (CLOCK_MONOTONIC); 0: none */
    uint64_t written;        /* when a call of the program last wrote it */
    uint64_t last_hashed;    /* when its bytes were last looked at */
    uint64_t swapped;        /* read-only: since when */
    uint64_t filled;         /* a bit a 64th that copies from the host have touched */
    uint64_t begun, ended;   /* of those: where they brought its first byte, and its last */
    uint32_t writers;        /* calls under way that write it */
    unsigned slot;           /* PROVIDED, SHARED, SPECULATIVE: the open reference */
    struct gps_id id;        /* of the shared block, from OFFERING on */
    struct gps_hash *chunks; /* of the shared block, while copies are compared with it; or NULL */
    uint8_t state;           /* enum gps_block_state */
    bool changed;            /* by something that is no hooked call: a kernel, most likely */
    bool excluded;           /* never merged: a graph writes it, or an exclusion says so */
    bool evicted;            /* a suspension evicted its memory; its addresses are kept */
};

struct gps_created;

struct gps_area {
    struct gps_range range; /* in the table of all */
    uint64_t pointer, size, extent;
    uint64_t context;
    uint64_t serial; /* of all areas that this process ever had */
    uint64_t made;   /* in which epoch (gate/streams.h) */
    const struct gps_rule *rule;
    uint64_t index;              /* of the rule's allocations */
    uint64_t times;              /* how many errors 700 may have come from it (exclusion.h) */
    char caller[GPS_GLOB_BYTES]; /* the module that allocated it */
    uint8_t uuid[GPS_UUID_BYTES];
    int device;
    /* Memory of the program's cuMemCreate (created.h), which adjoins other memory; else NULL. */
    struct gps_created *created;
    bool open;     /* such memory: the program may write it */
    bool lazy;     /* blocks are mapped when they are needed */
    bool synced;   /* SYNC_MEMOPS: a copy or fill that is no stream's has ended when it returns */
    bool tensors;  /* copies have brought some (layout.h) */
    uint8_t tries; /* to cut it anew that failed */
    bool freed;    /* on a stream. UNBACKED blocks of it stay so */
    struct gps_area_user {
        uint64_t context, event; /* event 0: its work has ended */
        uint64_t epoch;          /* of the free */
    } user;                      /* of a freed one: the work that may still use it */
    void *
        notes; /* of whoever only watches memory of the driver's own (learn/profile.h); else NULL */
    uint64_t *edges; /* a bit for each 2 MiB where a block should begin (layout.h); behind the
                        blocks. NULL where it is only watched */
    unsigned count;
    struct gps_block blocks[];
};

/* FROZEN, and not being offered. */
static inline bool gps_block_is_frozen(const struct gps_block *block) {
    return block->state == GPS_BLOCK_FROZEN || block->state == GPS_BLOCK_UNANSWERED;
}

/* The keeper has its memory, and it counts as merged. */
static inline bool gps_block_is_merged(const struct gps_block *block) {
    return block->state == GPS_BLOCK_PROVIDED || block->state == GPS_BLOCK_SHARED;
}

/* The program may write it only after a swap. */
static inline bool gps_block_is_read_only(const struct gps_block *block) {
    return block->state >= GPS_BLOCK_FROZEN && block->state <= GPS_BLOCK_SHARED;
}

/* Copies from the host have brought all of it. Of a 64th in which one ends and another begins only
 * the first and the last byte are known. */
static inline bool gps_block_is_full(const struct gps_block *block) {
    return !~(block->begun & block->ended);
}

/* Nothing is mapped there that the program may write. */
static inline bool gps_block_is_unbacked(const struct gps_block *block) {
    return block->state == GPS_BLOCK_UNBACKED || block->state == GPS_BLOCK_SPECULATIVE;
}

/* The memory that it is mapped to, or was, was created here. */
static inline bool gps_block_is_own(const struct gps_block *block) {
    return block->state >= GPS_BLOCK_PRIVATE && block->state <= GPS_BLOCK_PROVIDED;
}

/* The merger may look at it. Memory of cuMemCreate has a context only as long as that lives. */
static inline bool gps_area_is_usable(const struct gps_area *area) {
    return !area->created || (area->open && area->context);
}

/* A rule of the configuration took it. */
static inline bool gps_area_merges(const struct gps_area *area) {
    return area->rule != &gps_plain_rule;
}

/* The size of an allocation of so many bytes in whole blocks. */
static inline uint64_t gps_area_extent(uint64_t size) {
    return (size + GPS_MERGE_SMALL - 1) / GPS_MERGE_SMALL * GPS_MERGE_SMALL;
}
/* How many blocks lie between two places in an allocation, and where; `blocks` may be NULL. */
unsigned gps_area_cut(uint64_t at, uint64_t end, uint64_t largest, struct gps_block *blocks);
/* The first block of so many bytes: the largest power of two that fits, at most `largest`. */
static inline uint64_t gps_area_piece(uint64_t left, uint64_t largest) {
    return left >= largest ? largest : UINT64_C(1) << (63 - __builtin_clzll(left));
}
/* An area of so many bytes in whole blocks, cut, to be freed by free. NULL: there is no memory. */
struct gps_area *gps_area_new(uint64_t extent, uint64_t largest);

void gps_area_lock(void);
void gps_area_unlock(void);
static inline void gps_area_unlock_at_end(const bool *unused) {
    (void)unused;
    gps_area_unlock();
}
/* Takes the lock until the end of the block. */
#define GPS_AREAS_LOCKED()                                                                         \
    gps_area_lock();                                                                               \
    const bool areas_locked __attribute__((unused, cleanup(gps_area_unlock_at_end))) = true

/* The functions from here to gps_area_remove want the lock. NULL: there is none. */
struct gps_area *gps_area_at(uint64_t address);
/* The area at the address, if it has this serial: another area may have taken its place. */
struct gps_area *gps_area_of(uint64_t address, uint64_t serial);
/* An area of the context that was made before an epoch. Memory of cuMemCreate is of no context. */
struct gps_area *gps_area_of_context(uint64_t context, uint64_t before);
void gps_area_move(uint64_t context, uint64_t to); /* all areas of a context become another's */
/* Memory of cuMemCreate outlives its context, and has another one when the program uses it. */
void gps_area_forget_context(uint64_t context, uint64_t before);
/* Enters its context. */
int gps_area_enter(const struct gps_area *area);
/* A context ends: its events of frees before that are gone, and their work has ended. */
void gps_area_forget_events(uint64_t context, uint64_t before);
/* How many contexts have ended. A caller that gave the lock back meanwhile compares it anew. */
uint64_t gps_area_contexts_ended(void);
/* The block that begins at the address, and its area. NULL: it was freed, or cut anew. */
struct gps_block *gps_area_block(uint64_t address, uint64_t serial, struct gps_area **area);
struct gps_area *gps_area_next(const struct gps_area *area); /* by address; NULL: the first */
struct gps_area *gps_area_from(uint64_t address); /* which has the address, or the next */
void gps_area_add(struct gps_area *area);
void gps_area_remove(struct gps_area *area);

/* The span that all areas lie in. */
extern struct gps_range_span gps_area_span;

/* Whether an area may overlap the range. It needs no lock. */
static inline __attribute__((always_inline)) bool gps_area_near(uint64_t address, uint64_t size) {
    return address < __atomic_load_n(&gps_area_span.highest, __ATOMIC_RELAXED) &&
           address + size > __atomic_load_n(&gps_area_span.lowest, __ATOMIC_RELAXED);
}
/* The same, of areas that end within a block. Behind other areas nothing is mapped, and the driver
 * refuses calls that reach past their end. */
bool gps_area_padded_near(uint64_t address, uint64_t size);

/* Whether a range that begins in the area reaches past the end of the allocation. */
static inline bool gps_area_overrun(const struct gps_area *area, uint64_t address, uint64_t size) {
    const uint64_t end = area->pointer + area->size;
    return size && (address >= end || size > end - address);
}

/* The blocks that a range of the area touches: from *first up to, not including, *end. */
void gps_area_blocks(const struct gps_area *area, uint64_t address, uint64_t size, unsigned *first,
                     unsigned *end);

/* How many bytes of a range lie in one area, or in none, from its beginning on: ranges go from one
 * mapping of cuMemCreate to the next. It takes the lock. */
uint64_t gps_area_part(uint64_t address, uint64_t size);

/* The bits of `filled` that a range of the area touches in a block. */
uint64_t gps_area_bits(const struct gps_area *area, const struct gps_block *block, uint64_t address,
                       uint64_t size);

/* A copy from the host fills a range of the area in a block that it touches. */
void gps_area_fill(const struct gps_area *area, struct gps_block *block, uint64_t address,
                   uint64_t size);

/* A call that writes a range of the area is under way, until it has ended. `upload`: it copies from
 * the host. `captured`: into a graph, which will write at any time: the blocks are never merged.
 * With the lock. */
void gps_area_write_begins(struct gps_area *area, uint64_t address, uint64_t size, bool upload,
                           bool captured);
void gps_area_write_ends(struct gps_area *area, uint64_t address, uint64_t size);
