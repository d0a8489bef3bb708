/*
 * unmerge.h - blocks that the program is about to write get memory that may be written.
 *
 * Between gps_unmerge_begin and gps_unmerge_end the blocks of the range stay private. An unbacked
 * block gets memory. A merged one is replaced by a copy of its own, which waits until the device is
 * idle, as a free does, with the program's signals let in. Any thread may call these functions,
 * outside any pass of the gate; they need no scope. The codes are the driver's.
 */
#pragma once

#include "area.h"

/* `upload`: by a copy from the host. `captured`: into a graph, which will write at any time: the
 * blocks are never merged. Without success nothing is to be ended. */
int gps_unmerge_begin(uint64_t to, uint64_t size, bool upload, bool captured);
void gps_unmerge_end(uint64_t to, uint64_t size);
