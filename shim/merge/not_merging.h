/*
 * not_merging.h - why a process whose rules merge merges nothing: said once, and published.
 *
 * The merger's thread finds out in each turn, and a thread that cannot start it, or has no gate,
 * says so itself. `gpushare show`, `doctor` and `explain` read it.
 */
#pragma once

#include <stdbool.h>

#include "config/config.h"
#include "gpushare/region.h"

/* 0: nothing is in the way. Any thread, inside a gps_scope without a lock. */
void gps_not_merging_set(enum gps_not_merging why);
enum gps_not_merging gps_not_merging_get(void);

/* --- `gpushare merge off`, or a driver call that is unknown or not seen --- */

/* This process merges nothing new, until `on`. Or for good, because it has called a function of the
 * driver that the library does not know, or has a library that calls the driver past this one
 * (writable.h). Merged blocks stay so, and become private when written, as ever. Frozen blocks get
 * their access back. The merger's thread reads the directory's order (directory/orders.h); other
 * threads read what it found. */

void gps_pause_look(void); /* in the merger's thread, inside a gps_scope */
bool gps_pause_is_on(void);

/* Any thread may call these, and needs no scope. */
void gps_pause_for_good(const char *name, enum gps_not_merging why);
const char *gps_pause_name(void); /* the first one: a function, or a library; NULL: not for good */
enum gps_not_merging gps_pause_why(void); /* if it is for good */

/* --- a GPU that is shared by MPS --- */

/* A fault of one process is every client's there, and a kernel that writes into merged memory
 * faults. So rules without `mps = on` take nothing there. */

/* Whether the rule may not take memory of this device. Any thread, inside a gps_scope. */
bool gps_mps_forbids(const struct gps_rule *rule, int device);
/* Whether gps_mps_forbids ever answered true. */
bool gps_mps_has_forbidden(void);

/* --- devices by which other hardware reaches GPU memory --- */

/* Network cards (nvidia-peermem), GDRCopy, cuFile ask the driver nothing that we see, and go on
 * with the memory that they were given. So a process that has such a device open merges nothing for
 * rules without `rdma = on`, from then on until it ends. The descriptors of the process are looked
 * at before blocks are merged, but at most every 100 ms and for 2 % of the time. */

#define GPS_RDMA_NAME 64u /* room for a path, which is cut to fit */

/* Looks for such a device, if it did not lately. Any thread, inside a gps_scope without a lock. */
void gps_rdma_look(void);
/* The first that was found; NULL: none. */
const char *gps_rdma_device(void);
/* Whether a rule's memory is not to be merged. */
static inline bool gps_rdma_forbids(const struct gps_rule *rule) {
    return rule->rdma == GPS_RDMA_OFF && gps_rdma_device();
}
