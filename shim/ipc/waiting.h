/*
 * waiting.h - the regions that wait: freed by the program, or leaving with it, and perhaps still
 * held.
 *
 * Owns their list. A thread works on them in passes: it takes regions, which are then its own
 * ("busy", nobody else takes them), with `held` and `claimed` as the directory says now; puts each
 * back, or ends it; and says when it is done. The list's lock is held across neither driver calls
 * nor I/O, and a region stays in the list until its memory is gone, so a second free of it never
 * reaches the driver.
 */
#ifndef GPS_WAITING_H
#define GPS_WAITING_H

#include "registry/registry.h"

/* Busy: the caller's own until it puts it back. */
void gps_waiting_add(struct gps_export *region, bool busy);

/* How long to wait for passes under way, which may be in a free that waits for a kernel. */
enum gps_patience {
    GPS_HASTY,        /* not at all: what others are busy with is left to them */
    GPS_PATIENT,      /* two seconds */
    GPS_VERY_PATIENT, /* to their end: the driver is about to do the same */
};

/* Begins a pass: all of a context (0: of any) that nobody is busy with, linked by `work`. */
struct gps_export *gps_waiting_take(uint64_t context, enum gps_patience patience);
void gps_waiting_put_back(struct gps_export *region);
void gps_waiting_remove(struct gps_export *region); /* the caller's from now on */
void gps_waiting_done(void);                        /* ends the pass */

bool gps_waiting_any(void);
/* Whether a pointer that the program has freed is still allocated, here. */
bool gps_waiting_has(uint64_t pointer);
/* The program has freed what it leaves behind after all, when the driver no longer could. */
void gps_waiting_freed(uint64_t pointer);
/* When the next hand-over ends; UINT64_MAX: none. */
uint64_t gps_waiting_next_end(void);

void gps_waiting_reset(void); /* in a forked child */

#endif
