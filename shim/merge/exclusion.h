/*
 * exclusion.h - allocations that a kernel wrote into while they were merged, and error 700.
 *
 * The first 700 in a process with merged blocks is reported (merge-written), and the allocations
 * that it may come from are noted in the directory (directory/exclusions.h), so that they stay
 * private in the next process. Those are the allocations whose blocks were merged last, and the
 * doubtful ones among them: blocks that copies filled in part only are merged after all others.
 * Needs no scope. Any thread.
 */
#pragma once

#include "area.h"

/* Whether an earlier process recorded this allocation. Inside a gps_scope. */
bool gps_exclusion_known(const struct gps_area *area);
/* A call answered 700: reports it and records the allocations, at the first time. Not inside a pass
 * of the gate. */
void gps_exclusion_record(void);

void gps_exclusion_reset(void); /* in a forked child */
