/*
 * other_processes.h - the other processes, by the directory, as reasons for a refused call.
 *
 * Inside a gps_scope; any thread.
 */
#pragma once

#include <stdbool.h>

#include "gpushare/region.h"

struct gps_other_processes {
    bool has_our_pid; /* another process has this pid, in its own pid namespace */
    bool has_other_shm;
    bool may_export; /* a process other than `gpushare audit` may export */
};

/* Where the directory cannot be read, there may be an exporter. */
struct gps_other_processes gps_other_processes_look(void);

/* --- published handles that begin, or end, like a handle that no process has published --- */

struct gps_store;

struct gps_likeness {
    const uint8_t *handle;         /* the caller's */
    unsigned first, last;          /* equal bytes, of the handle that has most */
    struct gps_owner begins, ends; /* the makers of those handles; not set where the bytes are 0 */
    unsigned left;                 /* records that are not read */
};

/* Looks at so many records of a store at most. */
struct gps_likeness gps_likeness_of(const struct gps_store *store, const uint8_t *handle,
                                    unsigned records);

/* All bytes from this one on are 0. */
bool gps_handle_is_zero_from(const uint8_t *handle, unsigned from);
