/*
 * accounting.h - how many bytes of GPU memory each process has, and what sharing saves.
 *
 * All memory counts that the directory knows: regions, merged blocks, what merge rules took and is
 * not merged, and what programs made by cuMemCreate. Other memory of a program is not published,
 * and counts nowhere. A byte that several processes have is split evenly among them, as PSS does
 * with pages of main memory, so the parts add up to what is in use. Without sharing each process
 * would have a copy of a region, and a copy of a block for each of its mappings.
 *
 * An importer holds a region as long as it has it open; the owner until it frees it.
 */
#pragma once

#include <stdio.h>

#include "cli/json_tree.h"
#include "view.h"

/* The bytes of one process, or of several. */
struct account_bytes {
    uint64_t own;          /* of no other process */
    uint64_t shared;       /* of others, too */
    uint64_t proportional; /* own, and its part of what is shared */
    uint64_t unshared;     /* what it would take without sharing */
};

static inline uint64_t account_saved(const struct account_bytes *bytes) {
    return bytes->unshared - bytes->proportional;
}

/* The part of merge rules. */
struct account_merged {
    size_t blocks;   /* mappings */
    uint64_t mapped; /* bytes of them */
    uint64_t saved;
    uint64_t own;    /* bytes that merge rules took, but that are not merged */
    uint64_t untold; /* saved, and left out of the free memory that the process is told */
};

/* What the driver says of a process contains all of a region that it exports, and nothing of one
 * that it imports. */
struct account_charge {
    uint64_t bytes; /* of regions, as the driver counts them */
    bool unknown;   /* of regions of a dead owner and of VMM memory that several have */
};

/* A process on a GPU. */
struct account {
    const struct view_process *process;
    const uint8_t *device; /* UUID; NULL in a sum over GPUs */
    size_t gpus;           /* 1, or in a sum their number */
    size_t regions;        /* without blocks */
    uint64_t made;         /* bytes that the program has made by cuMemCreate; its own */
    uint64_t held;         /* bytes that others made so, and that tokens hold here; theirs */
    struct account_bytes bytes;
    struct account_merged merged;
    struct account_charge charge;
};

/* A GPU, or all of them. */
struct account_gpu {
    const uint8_t *device; /* NULL: all */
    uint64_t in_use;
    uint64_t kept;            /* of that: held for a process to come, by none now */
    uint64_t unshared, saved; /* what would be in use without sharing; the difference */
    size_t blocks, processes; /* of merge rules; and their bytes: */
    uint64_t held, unused;
    struct account_merged merged;
};

struct accounting {
    struct account *accounts; /* by process as in the view, then by GPU */
    size_t count;
    struct account_gpu *gpus;
    size_t gpu_count;
    struct account_gpu total; /* without the bytes of merge rules */
};

void accounting_make(const struct view *view, struct accounting *accounting);
void accounting_free(struct accounting *accounting);

/* The sum over the GPUs, from account number `at` on, which is the process's first; returns the
 * number of the next process's. */
size_t accounting_process(const struct accounting *accounting, size_t at, struct account *sum);
/* The sum for a process; all zeros when it has nothing. */
struct account accounting_of(const struct view *view, const struct gps_owner *owner);

/* Calls fn for each process that has the region, which is no block, its owner first. */
typedef void accounting_holder_fn(void *arg, const struct gps_owner *owner);
void accounting_each_holder(const struct view_region *region, accounting_holder_fn *fn, void *arg);
/* The bytes that the region takes, and those that copies of it for each holder would take. */
uint64_t accounting_in_use(const struct view_region *region);
uint64_t accounting_unshared(const struct view_region *region);

/* --- how much of what merge rules took of a process saves nothing, and why --- */

/* The reasons are its own words (GPS_VIA_PRIVATE). What is apart is seen from all processes: blocks
 * that only this one has, beside others of its program that merge on the same GPU. */

struct private_bytes {
    uint64_t bytes[GPS_PRIVATE_COUNT]; /* by enum gps_private */
};

struct private_bytes private_bytes_of(const struct view *view, const struct gps_owner *owner);
/* [{"reason": "unfilled", "bytes": 4194304}], those that are not 0. */
json_t *private_bytes_json(const struct view *view, const struct gps_owner *owner);
/* Which settings of engines help against tensors that lie apart (GPS_PRIVATE_APART): "Then this may
 * help:" and a line an engine, behind a margin. */
void private_apart_help(FILE *out, const char *margin);
