/* orphans.h - removes the files of dead processes from the published directory. */
#pragma once

#include "store.h"

struct gps_gc_counts {
    unsigned procs;   /* removed files of dead processes */
    unsigned regions; /* removed records: invalid ones, and those of dead owners without users */
    unsigned names;   /* removed names: of dead owners, and of missing regions */
    unsigned temps;   /* removed temporary files of dead writers, and other files of the dead */
    unsigned in_use;  /* regions of dead owners that a live process has open */
};

/* Removes the files of dead processes. It never touches files that a live process owns or has open,
 * records of another version, or files with unknown names. It may run at the same time as programs
 * and other collections. With dry_run it only counts. Odd entries (below) are skipped. Another
 * entry that cannot be judged or removed is left, and the first such error is returned after the
 * rest has been swept. Otherwise see store.h. */
int gps_store_gc(const struct gps_store *store, bool dry_run, struct gps_gc_counts *counts);

/* The same. Calls fn for each entry before it counts the entry; fn may be NULL. */
typedef void gps_gc_fn(void *arg, const char *directory, const char *name);
int gps_store_gc_each(const struct gps_store *store, bool dry_run, struct gps_gc_counts *counts,
                      gps_gc_fn *fn, void *arg);

/* Removes the temporary files of records and names of a process that writes none at this time. */
void gps_temps_remove(const struct gps_store *store, const struct gps_owner *self);

/* Calls fn for every odd entry: one that has a name of ours but is a directory, or not a regular
 * file where only a file can be judged. "." is the store itself. */
typedef void gps_odd_fn(void *arg, const char *directory, const char *name);
int gps_odd_each(const struct gps_store *store, gps_odd_fn *fn, void *arg);
