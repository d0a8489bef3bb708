/*
 * refused_writes.h - writes that imported memory does not take.
 *
 * What the program has closed, and only `open_cache` keeps mapped, is gone for the program: a write
 * from or to it is answered as the driver would. A write that the driver has refused because the
 * region is mapped read-only is reported.
 */
#pragma once

#include "config/config.h"
#include "process/program.h"

/* Listens to the writes of this program where its rules or `open_cache` call for that. After
 * gps_open_cache_start and gps_merge_start. */
void gps_refused_writes_start(const struct gps_config *config, const struct gps_program *program);
