/*
 * explained.h - what `gpushare explain` learns of a process, byte for byte.
 *
 * With GPUSHARE_EXPLAIN=DIR in its environment a process maps a file <DIR>/<pid>.<nonce> and counts
 * its allocations in it, equal ones in one row. So what is known outlasts any end of the process.
 * Integers are in the byte order of the machine. The tool reads the file when the process has
 * ended.
 */
#ifndef GPUSHARE_EXPLAINED_H
#define GPUSHARE_EXPLAINED_H

#include "region.h"

#define GPS_EXPLAINED_MAGIC "GPSEXPL"
#define GPS_EXPLAINED_ROWS  512u

enum gps_explained_outcome {
    GPS_EXPLAINED_PRIVATE = 0, /* with a rule: `why` */
    GPS_EXPLAINED_EXPORTED,
    GPS_EXPLAINED_IMPORTED,
    GPS_EXPLAINED_MERGED,   /* by a merge rule: `merged` below says whether any of it was */
    GPS_EXPLAINED_FAILED,   /* missing = fail */
    GPS_EXPLAINED_EXCLUDED, /* a merge rule's, and not merged after an error 700 */
    GPS_EXPLAINED_REFUSED,  /* it was left private, and the driver gave nothing: `why` */
    GPS_EXPLAINED_MISFIT,   /* as private; `why` names the key that the region does not fit */
};

#define GPS_EXPLAINED_PASSED 8u
#define GPS_EXPLAINED_FRAMES 32u

/* Allocations that agree in all but their numbers. Strings are terminated, and cut to fit. */
struct gps_explained_row {
    uint64_t count; /* 0: this row and those behind it are free */
    struct gps_explained_pass {
        uint64_t rule;        /* line of a section that fits; 0: this one and the next are free */
        uint64_t first, last; /* their numbers, which its index leaves out */
    } passed[GPS_EXPLAINED_PASSED];
    uint64_t size;
    uint32_t rule; /* line of the section that took it; 0: none */
    uint32_t outcome;
    uint32_t device; /* ordinal */
    uint32_t pool;   /* 1: cudaMallocAsync */
    uint8_t uuid[GPS_UUID_BYTES];
    char call[48];
    char caller[128]; /* file name of the module */
    char region[GPS_NAME_BYTES];
    char why[160];
};

/* Whole frames of one buffer that was exported with frames. */
struct gps_explained_frames {
    char name[GPS_NAME_BYTES]; /* of the region; "": this one and those behind it are free */
    uint64_t count;            /* that were whole */
    uint64_t alike;            /* so many of the last had one number of waits */
    uint64_t odd;              /* had another one than those before */
    uint32_t waits;            /* that number; 0: not known, or they have none */
    uint32_t threads;          /* 1: several threads draw */
};

struct gps_explained {
    char magic[8];    /* GPS_EXPLAINED_MAGIC */
    uint32_t version; /* GPS_FORMAT_VERSION */
    uint32_t pid;
    uint64_t lost;     /* allocations for which there was no row */
    uint64_t unmerged; /* at its end: enum gps_not_merging, or 0 */
    uint64_t merged;   /* the most bytes at a time */
    uint64_t untold;   /* the most that it was told to be free less than the driver says */
    /* bytes, by enum gps_private, when memory of merge rules was last seen */
    uint64_t private_bytes[GPS_PRIVATE_COUNT];
    /* CLOCK_MONOTONIC, ns: the first allocation that a merge rule took, and the end; 0: there was
     * none, as after a SIGKILL. */
    uint64_t began, ended;
    char program[128], executable[128];
    char arguments[GPS_ARGUMENT_BYTES];
    struct gps_explained_row rows[GPS_EXPLAINED_ROWS];
    struct gps_explained_frames frames[GPS_EXPLAINED_FRAMES];
};

#endif
