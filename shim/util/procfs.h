/*
 * procfs.h - the state of a process according to /proc.
 *
 * /proc may be missing, show another pid namespace or hide processes. So every answer can be
 * "unknown", and unknown never means dead. No allocation; safe from any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "gpushare/region.h"

struct gps_procfs_stat {
    char state;       /* 'R', 'S', 'Z', ... */
    uint64_t parent;  /* pid */
    uint64_t threads; /* includes a first thread that has exited */
    uint64_t start;   /* clock ticks since boot, in the time namespace of this process */
};

/* Reads the beginning of a file of /proc, and terminates it. Returns the number of bytes, or
 * -errno. */
ssize_t gps_procfs_read(const char *path, char *text, size_t size);

/* Reads the state of a process. 0 or -errno. -ENOENT, -ESRCH: no such process here. */
int gps_procfs_stat(uint32_t pid, struct gps_procfs_stat *stat);

/* The same for this process, if /proc shows its pids. */
int gps_procfs_stat_self(struct gps_procfs_stat *stat);

/* The path of a file of this process: "exe", "fd" ... Those in /proc/self are the first thread's,
 * and empty once that has ended by pthread_exit; then it is the calling thread's. */
#define GPS_PROCFS_PATH 64
void gps_procfs_path(const char *file, char path[GPS_PROCFS_PATH]);

/* The path of the caller's executable; "" where it cannot be read. */
void gps_procfs_executable_path(char *path, size_t size);

/* Its file name, cut to fit; "?" where it cannot be read. */
void gps_procfs_executable(char *name, size_t size);

/* The inode of the calling process's pid namespace; 0 if it cannot be read. */
uint64_t gps_procfs_pid_ns(void);
/* The inode of the host's own pid namespace; PROC_PID_INIT_INO in the kernel. */
#define GPS_PROCFS_FIRST_PID_NS UINT64_C(0xEFFFFFFC)

/* Whether an image of the caller's pid namespace surely ended, even if its lease is locked. */
bool gps_procfs_ended(const struct gps_owner *who);
