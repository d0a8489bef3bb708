/*
 * mistake.h - the end of a process that wrote into a merged block with a kernel: error 700.
 *
 * The first 700 in a process with merged blocks is reported (merge-written), and the allocations
 * that it may come from are noted in the directory (directory/mistakes.h), so that they stay
 * private in the next process. Those are the allocations whose blocks were merged last, and the
 * doubtful ones among them: blocks that copies filled in part only are merged after all others.
 * Needs no scope. Any thread.
 */
#pragma once

#include "area.h"

/* Whether an earlier process made a mistake with this allocation. Inside a gps_scope. */
bool gps_mistake_known(const struct gps_area *area);
/* A call answered 700. Not inside a pass of the gate. */
void gps_mistake_happened(void);

void gps_mistake_reset(void); /* in a forked child */
