/*
 * load.h - copies from pageable memory into areas with quiet = 0: made only where the bytes are not
 * there yet.
 *
 * Such a copy is made block by block. A block that it covers, and whose bytes the keeper has, is
 * mapped instead. Every 256 MiB what was copied is merged, so that replicas which load at the same
 * time do not each hold all of it. Needs no scope. Any thread.
 */
#pragma once

#include "write.h"

bool gps_load_takes(const struct gps_write *write);
/* The driver's code. */
int gps_load(const struct gps_write *write);
