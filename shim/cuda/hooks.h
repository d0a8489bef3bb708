/*
 * hooks.h - what hooks.def generates: the wrappers, and the functions that they call.
 *
 * gps_hook_<name> is the wrapper (hidden; the exported <name> is an alias of it). By calls/entry.h
 * it finds whether gpushare acts in this process at all; if not, it calls the real function and
 * nothing else. gps_on_<name>, in cuda_<kind>.c, converts the arguments of a DRIVER row and calls
 * the function of calls/ for it; in other rows the wrapper does that.
 */
#pragma once

#include "calls/entry.h"
#include "driver.h"
#include "operations.h"
#include "stack/call.h"

#define DRIVER(kind, name, parameters, arguments)                                                  \
    CUresult gps_hook_##name parameters;                                                           \
    CUresult gps_on_##name parameters;
#define WRITE(name, parameters, arguments, what)   CUresult gps_hook_##name parameters;
#define GATED(name, parameters, arguments, stream) CUresult gps_hook_##name parameters;
#define READ(name, parameters, arguments, stream)  CUresult gps_hook_##name parameters;
#include "hooks.def"

/* The stream that a call of the function is for. The null stream means the legacy default stream,
 * or each thread's own in a function whose name ends in _ptds or _ptsz. */
#define STREAM_OF(name, stream) gps_stream_of(#name, sizeof(#name), stream)
static inline __attribute__((always_inline)) CUstream gps_stream_of(const char *name, size_t size,
                                                                    CUstream stream) {
    return stream                              ? stream
           : size > 6 && name[size - 6] == '_' ? CU_STREAM_PER_THREAD
                                               : CU_STREAM_LEGACY;
}

/* The beginning of every wrapper. */
#define GPS_ENTER(name, arguments)                                                                 \
    struct gps_counted_call counted __attribute__((cleanup(gps_call_end)));                        \
    if (!gps_entry_enter(gps_operations_enter, &counted) || !gps_real.name)                        \
        return gps_real.name ? gps_real.name arguments : CUDA_ERROR_NOT_INITIALIZED;

/* What a DRIVER row's wrapper does. `seen` is for each call, `refused` for one without success. */
#define GPS_WRAPPED(name, arguments, seen, refused)                                                \
    GPS_ENTER(name, arguments)                                                                     \
    gps_call_enter(#name, GPS_SITE_HERE);                                                          \
    seen;                                                                                          \
    const CUresult result = gps_on_##name arguments;                                               \
    if (__builtin_expect(result != CUDA_SUCCESS, 0)) {                                             \
        gps_entry_refused((int)result);                                                            \
        refused;                                                                                   \
    }                                                                                              \
    gps_call_leave();                                                                              \
    return result;
#define GPS_WRAPPER(name, parameters, arguments, seen, refused)                                    \
    CUresult gps_hook_##name parameters{GPS_WRAPPED(name, arguments, seen, refused)} GPS_EXPORT(   \
        name)

/* The function of a row whose one argument names the object that it ends: `call` of calls/ gets the
 * argument, the driver's own function, and the further arguments. */
#define GPS_ENDS(name, type, call, ...)                                                            \
    static int real_##name(uint64_t which) {                                                       \
        return (int)gps_real.name((type)which);                                                    \
    }                                                                                              \
    CUresult gps_on_##name(type which) {                                                           \
        return (CUresult)call((uintptr_t)which, real_##name, ##__VA_ARGS__);                       \
    }
