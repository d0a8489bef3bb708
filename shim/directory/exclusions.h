/*
 * exclusions.h - allocations that must not be merged: <root>/<namespace>/exclusions.
 *
 * A kernel that writes into a merged block ends its process with error 700. Before the process
 * ends, it records here which of its allocations the kernel may have written into, so that the next
 * process keeps them private. The file is an array of struct gps_exclusion, of which rows with a
 * wrong checksum are ignored. A rule that was changed has another checksum, so its allocations are
 * merged again. The file stays when the last process leaves. Errors, threads and memory are as in
 * store.h.
 */
#pragma once

#include "store.h"

#define GPS_EXCLUSIONS   "exclusions"
#define GPS_CALLER_BYTES 128u

struct gps_exclusion {
    char program[GPS_COMM_BYTES];
    char caller[GPS_CALLER_BYTES]; /* file name of the module that allocated it */
    uint64_t size, index;          /* as its rule counts */
    uint64_t rule;                 /* the rule's checksum */
    uint64_t checksum;             /* of the bytes before it */
};

/* Sets the checksum and adds the row. */
int gps_exclusions_add(const struct gps_store *store, struct gps_exclusion *exclusion);
/* Whether the file has the row; its checksum need not be set. False also if the file cannot be
 * read.
 */
bool gps_exclusions_has(const struct gps_store *store, const struct gps_exclusion *exclusion);
/* Calls fn for every valid row. Returns 0 also if there is no file. */
typedef void gps_exclusion_fn(void *arg, const struct gps_exclusion *exclusion);
int gps_exclusions_each(const struct gps_store *store, gps_exclusion_fn *fn, void *arg);
/* Removes the file. Returns 0 also if there is none. */
int gps_exclusions_forget(const struct gps_store *store);
