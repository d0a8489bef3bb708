/*
 * region_list.h - the regions that this keeper holds: their records and descriptors.
 *
 * The list owns both. A region in it is published with the keeper as its owner, or will be when
 * there is room again. When a region leaves the list its record and name are removed, and its
 * descriptor is closed.
 *
 * The regions lie in memory that keeper and stand-by share; the index of them is the keeper's own.
 * The keeper may be killed between any two instructions, so a region counts by its stage, which is
 * written when the rest is there, and what ends it is written down before it is done: the next one
 * does it to its end. One process calls these functions at a time.
 */
#pragma once

#include <stdatomic.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "directory/store.h"

/* Makes a time an earlier one. */
static inline void sooner(uint64_t *time, uint64_t other) {
    if (other < *time)
        *time = other;
}

/* A region that is retired can be opened no more, and goes with its last holder: until then one
 * that was suspended gets its descriptor again. */
#define KEEPER_REGION_STAGES(FROM, TO)                                                             \
    FROM(FREE, TO(KEPT))                                                                           \
    FROM(KEPT, TO(RETIRED) | TO(ENDING))                                                           \
    FROM(RETIRED, TO(ENDING))                                                                      \
    FROM(ENDING, TO(FREE))
enum keeper_region_stage {
    KEEPER_REGION_FREE = 0, /* this place in the list is */
    KEEPER_REGION_KEPT,
    KEEPER_REGION_RETIRED,
    KEEPER_REGION_ENDING, /* record, name and descriptor go */
};

struct keeper_region {
    _Atomic unsigned stage; /* enum keeper_region_stage */
    _Atomic int descriptor; /* -1: adopted, and not deposited again yet; or offloaded */
    _Atomic int copy;       /* a block's bytes in main memory (offloaded.h); -1: none */
    struct gps_region_record record;
    bool published;     /* by us */
    uint64_t since;     /* the time at which we got it (CLOCK_MONOTONIC) */
    uint64_t last_held; /* GPS_KEEP_FOR: the time at which a process last held it */
    /* what the last sweep found: */
    bool held;
    bool creator_holds;
    unsigned users;            /* other processes that have it open */
    unsigned intents;          /* processes that are about to open it */
    struct gps_owner reloader; /* who brings it back to the GPU, */
    uint64_t reload_until;     /* or another one from then on */
    /* the index, made anew by each process that serves: */
    UT_hash_handle hh;
    struct keeper_region *next_free;
};

struct region_table {
    _Atomic size_t reached;    /* how many were ever used: all behind them are free */
    _Atomic uint64_t deposits; /* so far */
    _Atomic size_t copies;     /* how many regions have one */
    struct keeper_region regions[];
};

struct region_list {
    const struct gps_store *store;
    struct gps_owner self;       /* what the records say; it stays when the stand-by goes on */
    struct region_table *table;  /* shared */
    struct keeper_region *first; /* the head of a hash table, by id */
    struct keeper_region *free;  /* below `reached` */
    size_t max;                  /* the number of descriptors for them */
    uint64_t keep;               /* bytes of copies that stay (GPS_KEEPER_RELOAD) */
};

/* Makes the table, for `max` regions or as many as there is memory for. 0 or -errno. */
int region_list_begin(struct region_list *list);
/* After the death of the one that served: finds its regions, and ends what it had begun to. */
void region_list_recover(struct region_list *list);

static inline size_t region_list_count(const struct region_list *list) {
    return HASH_COUNT(list->first);
}

struct keeper_region *region_list_find(const struct region_list *list, const struct gps_id *id);

/* Publishes the region as ours. The list takes over `descriptor` on success. 0; -EMFILE, -ENOMEM,
 * or the error of gps_region_publish. */
int region_list_add(struct region_list *list, const struct gps_region_record *record,
                    int descriptor, uint64_t now);

/* Takes over the records of dead keepers. Call it as the only keeper, after gps_store_gc has
 * removed the regions that no process holds. 0 or -errno; -EAGAIN: a record's owner is still alive.
 * With `inherits`, finds the records of the living keeper whose name is `self`, which is about to
 * be replaced. -EMFILE: they are more than this process can hold. */
int region_list_adopt(struct region_list *list, uint64_t now, bool inherits);
/* It has been replaced: what it had dropped or retired meanwhile is so here, too. */
void region_list_settle(struct region_list *list);

/* The descriptor that the region lacks, which the list takes over. */
void region_list_give(struct region_list *list, struct keeper_region *region, int descriptor);
/* Whether that may be the sender's: a block of equal bytes may come from anybody. */
bool region_list_takes(const struct keeper_region *region, const struct gps_owner *sender);
/* Whether its descriptor is lacking, and its creator will not bring it. */
bool region_list_lost(const struct keeper_region *region, uint64_t now);

/* Drop removes the region at once. Retire lets nobody open it any more, and removes it after its
 * last holder. End is the one where nobody has it open, and else the other. */
void region_list_drop(struct region_list *list, struct keeper_region *region);
void region_list_retire(struct region_list *list, struct keeper_region *region);
void region_list_end(struct region_list *list, struct keeper_region *region);
static inline bool region_list_retired(const struct keeper_region *region) {
    return atomic_load(&region->stage) == KEEPER_REGION_RETIRED;
}
/* Whether it is one that processes have merged. */
static inline bool region_list_is_block(const struct keeper_region *region) {
    return memcmp(region->record.handle, GPS_BLOCK_MARK, sizeof(GPS_BLOCK_MARK) - 1) == 0;
}

/* Counts the holders of each region, and drops those that are retained no longer. Lowers *next to
 * the time of the next sweep that is needed even if nothing changes. *others: live processes but
 * us. 0 or -errno; then nothing was dropped. */
int region_list_sweep(struct region_list *list, uint64_t now, uint64_t *next, unsigned *others);
/* Drops the merged blocks that nobody has open, but those that are kept for ever. Who gets or
 * deposits a block has a slot first, so these need no grace. 0; -ENOENT: there is none of those. */
int region_list_reclaim(struct region_list *list);
