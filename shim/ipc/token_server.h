/*
 * token_server.h - the thread that answers processes which open tokens of this one
 * (gpushare/token.h).
 *
 * It starts with the first token, and ends with the process. It waits for no caller: one that does
 * not read its reply loses it.
 */
#pragma once

#include <stdbool.h>

#include "gpushare/region.h"

struct gps_token_run {
    uint64_t at, size, place, place_size; /* the run, and the reservation around it */
};
/* Finds the run of a token. False: it is none of this process, or it is over. */
typedef bool gps_token_find_fn(const struct gps_id *id, struct gps_token_run *run);

/* Inside a gps_scope, after joining the directory, by one thread at a time. 0 or -errno: there is
 * nobody to answer. */
int gps_token_server_start(gps_token_find_fn *find);
/* The process ends: the driver is touched no more. */
void gps_token_server_stop(void);
void gps_token_server_reset(void); /* in a forked child */
