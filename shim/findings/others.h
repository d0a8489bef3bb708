/*
 * others.h - what the directory shows of the other processes, for who looks for a reason.
 *
 * Inside a gps_scope; any thread.
 */
#pragma once

#include <stdbool.h>

struct gps_others {
    bool has_our_pid; /* one has, in its own pid namespace */
    bool has_other_shm;
    bool may_export; /* `gpushare audit` only sits in the directory */
};

/* Where the directory cannot be read, there may be an exporter. */
struct gps_others gps_others_look(void);
