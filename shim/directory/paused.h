/*
 * paused.h - processes that are to merge nothing: procs/<owner>.paused, an empty file.
 *
 * `gpushare merge off` makes the file and `on` removes it. The process looks whether it is there.
 * It goes with the process's own file, or by gc after the process was killed. Errors, threads and
 * memory are as in store.h.
 */
#pragma once

#include "store.h"

bool gps_paused_get(const struct gps_store *store, const struct gps_owner *owner);
/* 0 also where it is so already, or -errno. */
int gps_paused_set(const struct gps_store *store, const struct gps_owner *owner, bool paused);
/* Whether an entry of procs/ is such a file, and whose. */
bool gps_paused_parse(const char *name, struct gps_owner *owner);
