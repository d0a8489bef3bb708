/*
 * other_processes.h - what the directory shows of the other processes, for who looks for a reason.
 *
 * Inside a gps_scope; any thread.
 */
#pragma once

#include <stdbool.h>

#include "gpushare/region.h"

struct gps_other_processes {
    bool has_our_pid; /* one has, in its own pid namespace */
    bool has_other_shm;
    bool may_export; /* `gpushare audit` only sits in the directory */
};

/* Where the directory cannot be read, there may be an exporter. */
struct gps_other_processes gps_other_processes_look(void);

/* --- the published handles that begin, and that end, as one that nobody has published --- */

struct gps_store;

struct gps_likeness {
    const uint8_t *handle;         /* the caller's */
    unsigned first, last;          /* so many bytes are equal, of the handle that has most */
    struct gps_owner begins, ends; /* who made these; not set where that is 0 */
    unsigned left;                 /* records that are not read */
};

/* Looks at so many records of a store at most. */
struct gps_likeness gps_likeness_of(const struct gps_store *store, const uint8_t *handle,
                                    unsigned records);

/* All bytes from this one on are 0. */
bool gps_handle_is_zero_from(const uint8_t *handle, unsigned from);
