/*
 * load.h - copies from pageable memory into areas with quiet = 0: made only where the bytes are not
 * there yet.
 *
 * Such a copy is made block by block. When the first chunk of a block is that of a shared block,
 * the shared block is mapped speculatively, and the bytes that follow are compared with it chunk by
 * chunk. While they are equal no copy is made; where they differ the block becomes private. What
 * was copied is merged along the way, so that replicas which load at the same time do not each hold
 * all of it. The functions need no scope, and any thread may call them.
 */
#pragma once

#include "writes/write.h"

bool gps_load_takes(const struct gps_write *write);
/* The driver's code. */
int gps_load(const struct gps_write *write);
