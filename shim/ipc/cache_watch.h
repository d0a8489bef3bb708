/*
 * cache_watch.h - the watch over the files of imports that open_cache may keep: the records of
 * their regions, and the files of the records' owners.
 *
 * Owns the watch and its lock, which is held from reading a change until the registry has it. Any
 * thread; inside a gps_scope, but for gps_cache_watch_uncache and gps_cache_watch_quiet.
 */
#pragma once

#include "registry/registry.h"
#include "threads/watch.h"

/* Watches the files of an import, before they are read. The number of its record's, or less than
 * 0. */
int gps_cache_watch_add(const struct gps_import *import);
void gps_cache_watch_remove(int record_file);

/* No change is to be read. */
bool gps_cache_watch_quiet(void);
/* The registry has all changes from now on. */
void gps_cache_watch_note(void);
/* gps_registry_uncache, if no change is to be read. */
bool gps_cache_watch_uncache(const struct gps_id *region, uint64_t context, uint32_t trace,
                             uint64_t *pointer);
/* Outdates all that is cached, which wakes the thread that sleeps on the watch. */
void gps_cache_watch_outdate(void);
/* A copy to sleep on. False: it was closed by the program. */
bool gps_cache_watch_copy(struct gps_watch *watch);

void gps_cache_watch_reset(void); /* in a forked child */
