/*
 * load.h - copies from pageable memory into areas with quiet = 0: made only where the bytes are not
 * there yet.
 *
 * Such a copy is made block by block. When the first chunk of a block arrives that is the first
 * chunk of a shared block, that one is mapped, and what follows is compared with it chunk by chunk:
 * while it is equal no copy is made; where it is not, the block becomes private. What was copied is
 * merged along the way, so that replicas which load at the same time do not each hold all of it.
 * Needs no scope. Any thread.
 */
#pragma once

#include "writes/write.h"

bool gps_load_takes(const struct gps_write *write);
/* The driver's code. */
int gps_load(const struct gps_write *write);
