/*
 * parked_descriptors.h - descriptors of other processes' memory, kept where they take few numbers.
 *
 * The driver gives no descriptor of a block that was imported. So an importer parks the one that it
 * got from the keeper, to hand it to the next keeper, should that one die after the creator. A
 * program may import thousands: the descriptors wait in sockets of our own, sent and not yet
 * received, two dozen in a pair, and a pair takes two numbers. A descriptor cannot always be
 * parked: RLIMIT_NOFILE bounds how many a user may have on their way, and programs close sockets
 * that are not theirs. Such memory ends with its last mapping. Any thread may call these
 * functions, inside a gps_scope.
 */
#pragma once

#include <stdbool.h>

#include "gpushare/region.h"

/* Parks a copy; the descriptor stays the caller's. Each put needs a drop. */
void gps_parked_put(const struct gps_id *id, int descriptor);
/* Gives a copy, which is close-on-exec and belongs to the caller. */
bool gps_parked_get(const struct gps_id *id, int *descriptor);
void gps_parked_drop(const struct gps_id *id);

void gps_parked_reset(void); /* in a forked child */
