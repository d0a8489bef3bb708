/*
 * needed_room.h - this process's own memory on a GPU, and the room that it needs to come back.
 *
 * The driver loses a process for good that it restores without room. So the need is bounded from
 * above, and counted only while no other process of this user comes back to that GPU.
 *
 * Called by the thread of suspension.c alone, inside a scope for driver calls, without a lock.
 */
#pragma once

#include "gpushare/suspend.h"

/* Fills in `own`, `needs` and `device` of an answer. */
void gps_needed_room_measure(struct gps_answer_file *answer);

/* How many GPUs the process uses: those where it has a context, the program's own or the device's,
 * or memory. -1: more contexts than are counted. */
int gps_needed_room_gpus(void);
