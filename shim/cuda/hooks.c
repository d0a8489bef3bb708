/* hooks.c - see hooks.h. Nothing here but what the table generates. */
#include "hooks.h"

#include <stdlib.h>
#include <unistd.h>

#include "call.h"
#include "life.h"
#include "module.h"

#define EXPORTED __attribute__((visibility("default")))

#define DRIVER(kind, name, parameters, arguments)                                                  \
    CUresult gps_hook_##name parameters {                                                          \
        if (!gps_life_enter() || !gps_real.name)                                                   \
            return gps_real.name ? gps_real.name arguments : CUDA_ERROR_NOT_INITIALIZED;           \
        gps_call_enter(#name, GPS_SITE_HERE);                                                      \
        const CUresult result = gps_on_##name arguments;                                           \
        if (__builtin_expect(result == CUDA_ERROR_NOT_INITIALIZED && !gps_call.runtime, 0))        \
            gps_life_not_initialized();                                                            \
        gps_call_leave();                                                                          \
        return result;                                                                             \
    }                                                                                              \
    EXPORTED __typeof__(gps_hook_##name) name __attribute__((alias("gps_hook_" #name)));
#include "hooks.def"

/* Python's children and many others end with _exit: no handler runs, so this is where the memory
 * that others use is handed over and what we published is removed. */
#define EXIT(name)                                                                                 \
    EXPORTED void name(int status) {                                                               \
        gps_life_end();                                                                            \
        __typeof__(name) *real = (__typeof__(name) *)gps_libc_symbol(#name);                       \
        real(status);                                                                              \
        __builtin_unreachable();                                                                   \
    }
#include "hooks.def"
