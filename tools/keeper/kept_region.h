/*
 * kept_region.h - a region that the keeper holds, and the table of all of them.
 *
 * The regions lie in memory that keeper and stand-by share; their index is the keeper's own. The
 * keeper may be killed between any two instructions, so a region counts by its stage, which is
 * written after its other fields, and the stage of an end is written before the end begins: the
 * next keeper finishes it. One process calls these functions at a time.
 */
#pragma once

#include <stdatomic.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "directory/store.h"

/* A retired region cannot be opened any more, and ends with its last holder: until then a holder
 * that was suspended gets its descriptor again. */
#define KEEPER_REGION_STAGES(FROM, TO)                                                             \
    FROM(FREE, TO(KEPT))                                                                           \
    FROM(KEPT, TO(RETIRED) | TO(ENDING))                                                           \
    FROM(RETIRED, TO(ENDING))                                                                      \
    FROM(ENDING, TO(FREE))
enum keeper_region_stage {
    KEEPER_REGION_FREE = 0, /* this place in the list is free */
    KEEPER_REGION_KEPT,
    KEEPER_REGION_RETIRED,
    KEEPER_REGION_ENDING, /* record, name and descriptor are being removed */
};

struct keeper_region {
    _Atomic unsigned stage; /* enum keeper_region_stage */
    _Atomic int descriptor; /* -1: adopted, and not deposited again yet; or offloaded */
    _Atomic int copy;       /* a block's bytes in main memory (offloaded.h); -1: none */
    struct gps_region_record record;
    bool published;     /* the record is published by us */
    uint64_t since;     /* the time at which we got it (CLOCK_MONOTONIC) */
    uint64_t last_held; /* GPS_KEEP_FOR: the time at which a process last held it */
    /* what the last sweep found: */
    bool held;
    bool creator_holds;
    unsigned users;            /* other processes that have it open */
    unsigned intents;          /* processes that are about to open it */
    struct gps_owner reloader; /* the process that brings it back to the GPU, */
    uint64_t reload_until;     /* or from then on another one */
    /* the index, made anew by each process that serves: */
    UT_hash_handle hh;
    struct keeper_region *next_free;
};

struct region_table {
    _Atomic size_t reached;    /* how many places were ever used: all behind them are free */
    _Atomic uint64_t deposits; /* so far */
    _Atomic size_t copies;     /* how many regions have a copy */
    struct keeper_region regions[];
};

struct region_list {
    const struct gps_store *store;
    struct gps_owner self;       /* the name in the records; it stays when the stand-by goes on */
    struct region_table *table;  /* shared */
    struct keeper_region *first; /* the head of a hash table, by id */
    struct keeper_region *free;  /* below `reached` */
    size_t max;                  /* the number of descriptors for them */
    uint64_t keep;               /* bytes of copies that stay (GPS_KEEPER_RELOAD) */
};

static inline size_t region_list_count(const struct region_list *list) {
    return HASH_COUNT(list->first);
}

static inline bool region_list_retired(const struct keeper_region *region) {
    return atomic_load(&region->stage) == KEEPER_REGION_RETIRED;
}
/* Whether the region is a merged block. */
static inline bool region_list_is_block(const struct keeper_region *region) {
    return memcmp(region->record.handle, GPS_BLOCK_MARK, sizeof(GPS_BLOCK_MARK) - 1) == 0;
}
