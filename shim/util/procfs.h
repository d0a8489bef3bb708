/*
 * procfs.h - what /proc says about a process.
 *
 * /proc may be missing, show another pid namespace, or hide processes: every answer can be
 * "unknown", and unknown never means dead.
 */
#ifndef GPS_PROCFS_H
#define GPS_PROCFS_H

#include <stdbool.h>
#include <stdint.h>

#include "gpushare/region.h"

struct gps_procfs_stat {
    char state;       /* 'R', 'S', 'Z', ... */
    uint64_t threads; /* counts a leader that has exited */
    uint64_t start;   /* clock ticks since boot, as this process's time namespace sees it */
};

/* What /proc says of a process. -ENOENT, -ESRCH: no such process here. */
int gps_procfs_stat(uint32_t pid, struct gps_procfs_stat *stat);

/* The inode of our pid namespace; 0 when it cannot be read. */
uint64_t gps_procfs_pid_ns(void);

/* Whether a process image of our own pid namespace is certainly gone, whatever its lease says. */
bool gps_procfs_gone(const struct gps_owner *who);

#endif
