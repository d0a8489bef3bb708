/*
 * cache_watch.h - the watch over the files of imports that open_cache.h may keep: the records of
 * their regions, and the files of the records' owners.
 *
 * Owns the watch and its lock, which is held from reading a change until the registry has it. Any
 * thread; inside a gps_scope, but for gps_cache_watch_uncache.
 */
#pragma once

#include "registry/registry.h"
#include "threads/watch.h"

/* Watches the files of an import, before they are read. The number of its record's, or less than
 * 0. */
int gps_cache_watch_add(const struct gps_import *import);
void gps_cache_watch_remove(const struct gps_import *import);

/* gps_registry_uncache, unless a change is unread. */
bool gps_cache_watch_uncache(const struct gps_import *import, uint32_t trace, uint64_t *pointer);
/* Reads all changes: imports of the changed files are stale. Where one of them is cached, the
 * thread that sleeps on the watch wakes (by_sleeper: it is the caller). */
void gps_cache_watch_read(bool by_sleeper);
/* Makes stale what is cached in other contexts than this one (0: in all), and wakes the thread. */
void gps_cache_watch_expire(uint64_t context);
/* A copy to sleep on. False: the program has closed it. */
bool gps_cache_watch_copy(struct gps_watch *watch);

void gps_cache_watch_reset(void); /* in a forked child */
