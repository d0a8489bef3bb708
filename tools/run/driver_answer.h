/*
 * driver_answer.h - asks a driver in a child, for its version and its GPUs.
 *
 * A driver in a bad state can crash or hang its caller, even beyond a signal's reach. So the child
 * has none of our descriptors but one pipe. After the time-out it is killed and, if it does not
 * die, left behind.
 */
#pragma once

#include "gpushare/region.h"
#include "util/clock.h"
#include "vendor.h"

#define DRIVER_GPUS 16

struct driver_answer {
    enum { DRIVER_LOAD, DRIVER_INIT, DRIVER_COUNT, DRIVER_DONE } step; /* of `code` or `error` */
    int code;                                                          /* CUresult, hipError_t */
    int version, count;
    char error[512]; /* of dlopen */
    char path[512];  /* of the library */
    struct driver_gpu {
        char name[96];
        uint8_t uuid[GPS_UUID_BYTES];
        int compute_mode; /* of CUDA */
    } gpus[DRIVER_GPUS];
};

/* The time-out is in ns. NULL, or why no answer came; malloc'ed. */
char *driver_ask(enum runtime runtime, uint64_t timeout, struct driver_answer *answer);

/* Waits until a child has ended, at most to the time `until` (gps_clock_monotonic): its wait
 * status, or -1. One that is in the driver may not even die of SIGKILL. */
int driver_reap(int child, uint64_t until);
#define DRIVER_DIES_WITHIN GPS_SECOND

/* Opens a runtime's own library. What the loader finds first counts, of HIP the newest version
 * before older ones, as a program that is linked with it has it; then ROCm's own place. */
void *driver_load(enum runtime runtime);
