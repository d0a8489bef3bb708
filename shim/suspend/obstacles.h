/*
 * obstacles.h - why this process cannot let go of what it shares: the one list of refusals.
 *
 * A way of sharing that is added to the library has a row here, unless let_go.c can undo it.
 */
#pragma once

#include "util/text.h"

/* Adds the first reason, and what to do. False: there is none. Inside a gps_scope, without a lock.
 */
bool gps_obstacle_find(struct gps_text *why);
