/*
 * record_reservation.h - the records in the directory that a thread of this process makes or
 * removes just now, and the tombstones: regions of this process that were freed and whose records
 * are still there, so that a stale handle is known.
 *
 * The driver can give the handle of a freed region again, and a record is found by the hash of its
 * handle. So a thread that makes a record, or removes a tombstone's, reserves its id first; another
 * thread with that id waits for the end of the reservation, which takes as long as some files. No
 * lock is held meanwhile. A reservation lies on its thread's stack. All signals must be blocked
 * from the reservation to its end, because a signal handler must not leave by longjmp.
 *
 * The newest 1,024 tombstones are kept, or fewer, as the caller says, in memory and by id: no
 * record has to be read to know one. Nothing is allocated.
 */
#pragma once

#include "directory/record.h"

enum { GPS_TOMBSTONES = 1024 };

struct gps_record_reservation {
    struct gps_id id;
    struct gps_record_reservation *next;
};

/* Reserves an id. True: it was that of a tombstone, whose record is the caller's from now on. */
bool gps_record_reserve_id(struct gps_record_reservation *reservation, const struct gps_id *id);
/* Makes a tombstone of a region, of at most `limit` (1 to GPS_TOMBSTONES). True: the oldest one was
 * removed for it; its id is reserved, and its record is the caller's to remove. Then more may have
 * to go: call again without an id, until it is false. */
bool gps_record_leave_tombstone(const struct gps_id *id, unsigned limit,
                                struct gps_record_reservation *oldest);
/* Reserves the next tombstone from a place on, and removes it. False: there is none. */
bool gps_record_reserve_tombstone(unsigned *place, struct gps_record_reservation *reservation);
/* Ends a reservation. */
void gps_record_release(struct gps_record_reservation *reservation);
