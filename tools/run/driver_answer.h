/*
 * driver_answer.h - asks a driver in a child, for its version and its GPUs.
 *
 * A driver in a bad state can crash or hang its caller, even beyond a signal's reach. So the child
 * has only one pipe of ours. After the time-out it is killed and, if it does not die, left behind.
 */
#pragma once

#include <stddef.h>

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

/* --- the functions of a driver or runtime --- */

/* Our name, type, CUDA's name, HIP's; NULL: it has none. Their ABI is fixed, so no header of CUDA
 * or HIP is needed. */
#define DRIVER_FUNCTIONS(F)                                                                        \
    F(init, int (*)(unsigned), "cuInit", NULL)                                                     \
    F(version, int (*)(int *), "cuDriverGetVersion", "hipRuntimeGetVersion")                       \
    F(count, int (*)(int *), "cuDeviceGetCount", "hipGetDeviceCount")                              \
    F(name, int (*)(char *, int, int), "cuDeviceGetName", "hipDeviceGetName")                      \
    F(uuid, int (*)(uint8_t *, int), "cuDeviceGetUuid", "hipDeviceGetUuid")                        \
    F(attribute, int (*)(int *, int, int), "cuDeviceGetAttribute", NULL)

struct driver {
#define DRIVER_MEMBER(id, type, cuda, hip) __typeof__((type)NULL) id;
    DRIVER_FUNCTIONS(DRIVER_MEMBER)
};

/* Loads the runtime's own library into this process: its handle, or NULL, and `why` says why not.
 */
void *driver_open(enum runtime runtime, struct driver *driver, char *why, size_t size);
