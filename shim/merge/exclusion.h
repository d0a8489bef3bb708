/*
 * exclusion.h - allocations that a kernel wrote into while they were merged, and error 700.
 *
 * The first 700 in a process with merged blocks is reported (merge-written), and the allocations
 * that it may come from are noted in the directory (directory/exclusions.h): those that were merged
 * in the last 5 s, or all where none was.
 *
 * The driver does not tell the address of an error 700, and most such errors are a bug of the
 * program's own. So an allocation is suspected at first. It stays private in the next process if a
 * process that began after it was noted ends so, too, or at once if it was merged in the last 5 s.
 * Replicas that end together count once.
 * Needs no scope. Any thread.
 */
#pragma once

#include "area.h"
#include "directory/exclusions.h"

/* How often a process before this one recorded this allocation: from GPS_EXCLUDED on it is not
 * merged. Inside a gps_scope. */
uint64_t gps_exclusion_times(const struct gps_area *area);
/* The first call that answered 700: reports and records the allocations. In no pass of the gate. */
void gps_exclusion_record(void);
