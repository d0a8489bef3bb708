/*
 * parked_descriptors.h - descriptors of other processes' memory, kept where they take no numbers.
 *
 * The driver gives no descriptor of a block that was imported. So who imports one keeps what it got
 * from the keeper, to hand it to the next one, should that keeper die after the creator. A program
 * may import thousands: the descriptors wait in sockets of our own, sent and not yet received, some
 * two hundred in a pair, and each pair takes two numbers, high ones. What cannot be kept
 * (RLIMIT_NOFILE bounds what a user may have on its way; a program closed our sockets) is not: it
 * then ends with its last mapping. Any thread; inside a gps_scope.
 */
#ifndef GPS_PARKED_DESCRIPTORS_H
#define GPS_PARKED_DESCRIPTORS_H

#include <stdbool.h>

#include "gpushare/region.h"

/* Keeps a copy; the descriptor stays the caller's. As often as it is put it is to be dropped. */
void gps_parked_put(const struct gps_id *id, int descriptor);
/* A copy, close-on-exec, the caller's. */
bool gps_parked_get(const struct gps_id *id, int *descriptor);
void gps_parked_drop(const struct gps_id *id);

void gps_parked_reset(void); /* in a forked child */

#endif
