/*
 * writable.h - blocks that the program is about to write get memory that may be written.
 *
 * Between gps_writable_begin and gps_writable_end the blocks of the range stay private. An unbacked
 * block gets memory. A merged one is replaced by a copy of its own, which waits until the device is
 * idle, as a free does, with the program's signals let in. Any thread may call these functions,
 * outside any pass of the gate; they need no scope. The codes are the driver's.
 */
#pragma once

#include <stdbool.h>

#include "area.h"

/* `upload`: by a copy from the host. `captured`: into a graph, which will write at any time: the
 * blocks are never merged. Without success nothing is to be ended. */
int gps_writable_begin(uint64_t to, uint64_t size, bool upload, bool captured);
void gps_writable_end(uint64_t to, uint64_t size);

/* --- all memory that merge rules took becomes plain --- */

/* Called before a function of the driver runs that the library does not know: it may copy past the
 * gate, capture, or hold memory physically. So each block gets memory of this process's own,
 * mapped, and memory of cuMemCreate is whole again. From then on the process merges nothing, and
 * its rules take nothing to merge (not_merging.h). That is told once, by name.
 *
 * Where there is no memory for that the function runs all the same, unless `surely`: then it can
 * run at any time from now on. Any thread, outside any pass of the gate. It needs no scope. */
void gps_plain_make(const char *function, bool surely);

/* --- before a library calls the driver past this one --- */

/* Whether the program has loaded such a library (stack/bypass.h) since the last look: then nothing
 * new is merged. Any thread. It needs no scope. */
void gps_plain_look(void);
/* The same, and all memory becomes plain if it is so. Any thread of the program's, outside any pass
 * of the gate, where it may wait. It needs no scope. */
void gps_plain_look_and_make(void);
