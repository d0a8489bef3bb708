/*
 * mistakes.h - allocations that must not be merged: <root>/<namespace>/mistakes.
 *
 * A process that wrote into a merged block with a kernel is lost. Before it ends it leaves here
 * which of its allocations were merged, so that the next one keeps them private. The file is a row
 * of struct gps_mistake; a row whose checksum is wrong counts as none. A rule that was changed has
 * another checksum, and is tried anew. The file stays when the last process leaves. Errors, threads
 * and memory are as in store.h.
 */
#pragma once

#include "store.h"

#define GPS_MISTAKES     "mistakes"
#define GPS_CALLER_BYTES 128u

struct gps_mistake {
    char program[GPS_COMM_BYTES];
    char caller[GPS_CALLER_BYTES]; /* file name of the module that allocated it */
    uint64_t size, index;          /* as its rule counts */
    uint64_t rule;                 /* the rule's checksum */
    uint64_t checksum;             /* of the bytes before it */
};

/* Adds it, and seals it first. */
int gps_mistakes_add(const struct gps_store *store, struct gps_mistake *mistake);
/* Whether it is there; the checksum need not be set. False also when it cannot be known. */
bool gps_mistakes_has(const struct gps_store *store, const struct gps_mistake *mistake);
/* Calls fn for every valid row. 0 also without a file. */
typedef void gps_mistake_fn(void *arg, const struct gps_mistake *mistake);
int gps_mistakes_each(const struct gps_store *store, gps_mistake_fn *fn, void *arg);
/* Removes all. 0 also without a file. */
int gps_mistakes_forget(const struct gps_store *store);
