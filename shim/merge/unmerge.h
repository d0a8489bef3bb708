/*
 * unmerge.h - blocks that the program is about to write get memory that may be written.
 *
 * Between gps_unmerge_begin and gps_unmerge_end the blocks of the range stay private. An empty
 * block gets memory; a merged one is swapped for a copy of its own, which waits until the device is
 * idle as a free does. Needs no scope; no pass of the gate. Any thread. The codes are the driver's.
 */
#pragma once

#include "area.h"

/* `upload`: by a copy from the host. `captured`: into a graph, which will write at any time: the
 * blocks are never merged. Without success nothing is to be ended. */
int gps_unmerge_begin(uint64_t to, uint64_t size, bool upload, bool captured);
void gps_unmerge_end(uint64_t to, uint64_t size);
