/*
 * load.h - copies from the host into areas with quiet = 0: made only where bytes are missing.
 *
 * It is about copies from pageable memory, and synchronous ones from pinned memory. Such a copy is
 * made block by block. When the first chunk of a block is that of a shared block, and the copy
 * brings all of the block, the hash of its bytes tells the shared block that is mapped. Threads
 * that load such blocks do not wait for each other. A copy that brings less has the shared block
 * mapped speculatively, and the bytes that follow are compared with it chunk by chunk. While they
 * are equal no copy is made; where they differ the block becomes private. What was copied is merged
 * along the way. Copies wait for that only with overcommit: replicas that load at the same time
 * would each hold all of it. The functions need no scope, and any thread may call them.
 */
#pragma once

#include "gate/write.h"

/* Whether gps_load makes the copy. *pinned: it is from pinned memory; for gps_load. */
bool gps_load_takes(const struct gps_write *write, bool *pinned);
/* The driver's code. */
int gps_load(const struct gps_write *write, bool pinned);
