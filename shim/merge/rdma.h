/*
 * rdma.h - devices by which other hardware reaches GPU memory and asks the driver nothing that we
 * see: network cards (nvidia-peermem), GDRCopy, cuFile.
 *
 * Such hardware goes on with the memory that it was given, so a process that has such a device open
 * merges nothing for rules without `rdma = on`, from then on until it ends. The descriptors of the
 * process are looked at before blocks are merged, but at most every 100 ms and for 2 % of the time.
 */
#pragma once

#include <stdbool.h>

#include "config/config.h"

#define GPS_RDMA_NAME 64u /* room for a path, which is cut to fit */

/* Whether a path is the name of such a device. */
bool gps_rdma_is_device(const char *path);

/* Looks, if it was not lately. Any thread, inside a gps_scope without a lock. */
void gps_rdma_look(void);
/* The first that was found; NULL: none. */
const char *gps_rdma_device(void);
/* Whether a rule's memory is not to be merged. */
static inline bool gps_rdma_forbids(const struct gps_rule *rule) {
    return rule->rdma == GPS_RDMA_OFF && gps_rdma_device();
}
