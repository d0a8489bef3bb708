/*
 * hip_hooks.h - what hip_hooks.def generates: the wrappers, and the functions that they call.
 *
 * gps_hook_<name> is the wrapper (hidden; the exported <name> is an alias of it). By calls/entry.h
 * it finds whether gpushare acts in this process at all; if not, it calls the real function and
 * nothing else. gps_on_<name>, in hip_<kind>.c, converts the arguments and calls calls/.
 */
#pragma once

#include <stdbool.h>

#include "calls/entry.h"
#include "hip_library.h"
#include "stack/call.h"

#define HIP(kind, name, parameters, arguments)                                                     \
    hipError_t gps_hook_##name parameters;                                                         \
    hipError_t gps_on_##name parameters;
#include "hip_hooks.def"

/* The beginning of every wrapper. */
#define GPS_HIP_ENTER(name, arguments)                                                             \
    if (!gps_entry_begin(gps_hip_enter) || !gps_hip_real.name)                                     \
        return gps_hip_real.name ? gps_hip_real.name arguments : GPS_NOT_INITIALIZED;

/* The wrapper of a row that acts. */
#define GPS_HIP_WRAPPER(name, parameters, arguments)                                               \
    hipError_t gps_hook_##name parameters {                                                        \
        GPS_HIP_ENTER(name, arguments)                                                             \
        gps_call_enter(#name, GPS_SITE_HERE);                                                      \
        gps_call_count();                                                                          \
        const int before = gps_last_error_begin();                                                 \
        const hipError_t result = gps_on_##name arguments;                                         \
        gps_hip_answered(result);                                                                  \
        gps_last_error_end(before, result);                                                        \
        gps_call_leave();                                                                          \
        return result;                                                                             \
    }                                                                                              \
    GPS_EXPORT(name)

/* The wrapper of a row that only answers a question. */
#define GPS_HIP_TELLS(name, parameters, arguments)                                                 \
    hipError_t gps_hook_##name parameters {                                                        \
        GPS_HIP_ENTER(name, arguments)                                                             \
        return gps_on_##name arguments;                                                            \
    }                                                                                              \
    GPS_EXPORT(name)

/* The runtime has answered a call of the program's. */
void gps_hip_answered(int code);

/* gps_entry_slowly for HIP: finds the runtime, and makes these operations gps_ops. */
bool gps_hip_enter(void);

/* --- last_error.c: the answers of hipGetLastError, as if we had made no calls --- */

/* Every call of the runtime's may change its thread's last error: before version 7 it is the result
 * of the last call, from 7 on the last one that is not 0, until the program reads it. So a wrapper
 * notes it before it begins and sets it when it ends. Only 0, 1 and 400 can be set, by a call that
 * answers so. For any other code 400 is set, which few calls answer, and hipGetLastError tells the
 * other one while it is still there. The state is thread-local. */

/* The error before a call of the program's. */
int gps_last_error_begin(void);
/* The call has answered `code`. */
void gps_last_error_end(int before, int code);
/* The same for a wrapper that made no calls of our own. */
void gps_last_error_passed(int code);
