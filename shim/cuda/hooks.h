/*
 * hooks.h - what hooks.def generates: the wrappers, and the functions that give them their meaning.
 *
 * gps_hook_<name> is the wrapper (hidden; the exported <name> is an alias of it). It asks enter.h
 * whether gpushare acts in this process at all; if not, it calls the real function and nothing
 * else. gps_on_<name>, in cuda_<kind>.c, is what the call means; of a WRITE row, that is in
 * merge/write.h.
 */
#pragma once

#include "driver.h"

#define DRIVER(kind, name, parameters, arguments)                                                  \
    CUresult gps_hook_##name parameters;                                                           \
    CUresult gps_on_##name parameters;
#define WRITE(name, parameters, arguments, what)   CUresult gps_hook_##name parameters;
#define GATED(name, parameters, arguments, stream) CUresult gps_hook_##name parameters;
#define READ(name, parameters, arguments, stream)  CUresult gps_hook_##name parameters;
#include "hooks.def"

/* The wrapper of one DRIVER row. `seen` is called for each call. */
#define GPS_WRAPPER(name, parameters, arguments, seen)                                             \
    CUresult gps_hook_##name parameters {                                                          \
        if (!gps_enter() || !gps_real.name)                                                        \
            return gps_real.name ? gps_real.name arguments : CUDA_ERROR_NOT_INITIALIZED;           \
        gps_call_enter(#name, GPS_SITE_HERE);                                                      \
        seen;                                                                                      \
        const CUresult result = gps_on_##name arguments;                                           \
        if (__builtin_expect(result != CUDA_SUCCESS, 0))                                           \
            gps_enter_refused((int)result);                                                        \
        gps_call_leave();                                                                          \
        return result;                                                                             \
    }                                                                                              \
    GPS_EXPORTED __typeof__(gps_hook_##name) name __attribute__((alias("gps_hook_" #name)));

#define GPS_EXPORTED __attribute__((visibility("default")))
