/*
 * needed_room.h - what this process has for itself on a GPU, and what it needs to come back.
 *
 * The driver loses a process for good that it restores without room, so what it needs is bounded
 * from above, and counted only while nobody else of this user comes back to that GPU.
 *
 * Called by the thread of suspension.c alone, inside a scope for driver calls, without a lock.
 */
#pragma once

#include "gpushare/suspend.h"

/* Fills in `own`, `needs` and `device` of an answer. */
void gps_needed_room_measure(struct gps_answer_file *answer);

/* How many GPUs it uses: where it has a context, the program's own or the device's, or memory. -1:
 * it has had more contexts than are counted. */
int gps_needed_room_gpus(void);
