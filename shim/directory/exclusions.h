/*
 * exclusions.h - allocations that must not be merged: <root>/<namespace>/exclusions.
 *
 * A kernel that writes into a merged block ends its process with error 700, and so does any other
 * wrong access. Before the process ends, it records here which of its allocations the error may
 * have come from. From the second time on the next process keeps those allocations private. The
 * file is an array of struct gps_exclusion, of which rows with a wrong checksum are ignored. Rows
 * are only ever added: the times of an allocation are the most that its rows have since it was last
 * forgotten. A rule that was changed has another checksum, so its allocations are merged again. The
 * file stays when the last process leaves. Errors, threads and memory are as in store.h.
 */
#pragma once

#include "store.h"

#define GPS_EXCLUSIONS   "exclusions-2" /* of version 2: the rows of "exclusions" were smaller */
#define GPS_CALLER_BYTES 128u

enum { GPS_FORGOTTEN = 0, GPS_SUSPECTED = 1, GPS_EXCLUDED = 2 /* times, or more */ };

struct gps_exclusion {
    char program[GPS_COMM_BYTES];
    char name[GPS_NAME_BYTES];     /* of its rule */
    char caller[GPS_CALLER_BYTES]; /* file name of the module that allocated it */
    uint64_t size, index;          /* as its rule counts */
    uint64_t rule;                 /* the rule's checksum */
    uint64_t times;                /* processes whose error 700 may have come from it */
    uint64_t checksum;             /* of the bytes before it */
};

/* Sets the checksum and adds the row. */
int gps_exclusions_add(const struct gps_store *store, struct gps_exclusion *exclusion);
/* Whether both are rows of one allocation: all before `times` is equal. */
bool gps_exclusion_is_same(const struct gps_exclusion *a, const struct gps_exclusion *b);
/* The times of an allocation after this row of it, if they were `before` until then. */
uint64_t gps_exclusion_times_after(uint64_t before, const struct gps_exclusion *row);
/* The allocation's times; the argument's need not be set. 0 also for an unreadable file. */
uint64_t gps_exclusions_times(const struct gps_store *store, const struct gps_exclusion *exclusion);
/* Calls fn for every valid row. Returns 0 also if there is no file. */
typedef void gps_exclusion_fn(void *arg, const struct gps_exclusion *exclusion);
int gps_exclusions_each(const struct gps_store *store, gps_exclusion_fn *fn, void *arg);
/* Removes the file. Returns 0 also if there is none. */
int gps_exclusions_forget(const struct gps_store *store);
