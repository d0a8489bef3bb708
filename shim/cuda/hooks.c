/* hooks.c - see hooks.h. Nothing here but what the table generates. The look-ups' own wrappers
 * stand beside what they hand out, in cuda_lookup.c. */
#include "hooks.h"

#include <unistd.h>

#include "enter.h"
#include "ipc/open_cache.h"
#include "learn/learner.h"
#include "lifecycle/lifecycle.h"
#include "merge/allocation.h"
#include "process/call_counter.h"
#include "registry/registry.h"
#include "stack/call.h"
#include "stack/module.h"
#include "written.h"

#define WRAP_lookup(name, parameters, arguments)
#define COUNTED(name, parameters, arguments)                                                       \
    GPS_WRAPPER(name, parameters, arguments, gps_call_count())
#define WRAP_context(name, parameters, arguments) COUNTED(name, parameters, arguments)
#define WRAP_memory(name, parameters, arguments)  COUNTED(name, parameters, arguments)
#define WRAP_ipc(name, parameters, arguments)     COUNTED(name, parameters, arguments)
#define WRAP_merge(name, parameters, arguments)   COUNTED(name, parameters, arguments)
#define DRIVER(kind, name, parameters, arguments) WRAP_##kind(name, parameters, arguments)
#include "hooks.def"

/* A copy that nothing asks about is the driver's alone. */
#define WRITE(name, parameters, arguments, what)                                                   \
    CUresult gps_hook_##name parameters {                                                          \
        struct gps_gate_pass pass;                                                                 \
        int code;                                                                                  \
        if (!gps_enter() || !gps_real.name)                                                        \
            return gps_real.name ? gps_real.name arguments : CUDA_ERROR_NOT_INITIALIZED;           \
        if (__builtin_expect(!gps_write_seen && !gps_open_cache_used, 1))                          \
            return gps_real.name arguments;                                                        \
        const struct gps_write write = what;                                                       \
        if (gps_open_cache_used && gps_write_is_of_closed(&write))                                 \
            return CUDA_ERROR_INVALID_VALUE;                                                       \
        if (!gps_write_seen)                                                                       \
            return gps_real.name arguments;                                                        \
        gps_call_enter(#name, GPS_SITE_HERE);                                                      \
        if (gps_write_begin(&write, &pass, &code)) {                                               \
            code = (int)gps_real.name arguments;                                                   \
            gps_write_end(&write, &pass, code);                                                    \
            gps_learn_written(&write);                                                             \
        }                                                                                          \
        gps_call_leave();                                                                          \
        return (CUresult)code;                                                                     \
    }                                                                                              \
    GPS_EXPORTED __typeof__(gps_hook_##name) name __attribute__((alias("gps_hook_" #name)));
#include "hooks.def"

/* No call is noted: a launch has no report, and costs nanoseconds. */
#define GATED_AFTER(name, parameters, arguments, stream, refused, is_copy)                         \
    CUresult gps_hook_##name parameters {                                                          \
        struct gps_gate_pass pass;                                                                 \
        int code;                                                                                  \
        if (!gps_enter() || !gps_real.name)                                                        \
            return gps_real.name ? gps_real.name arguments : CUDA_ERROR_NOT_INITIALIZED;           \
        if (refused)                                                                               \
            return CUDA_ERROR_INVALID_VALUE;                                                       \
        if (__builtin_expect(!gps_merge_active, 1))                                                \
            return gps_real.name arguments;                                                        \
        if (gps_work_begin_at_once((uintptr_t)(stream), &pass) ||                                  \
            gps_work_begin((uintptr_t)(stream), is_copy, &pass, &code)) {                          \
            code = (int)gps_real.name arguments;                                                   \
            gps_work_end(&pass, code);                                                             \
        }                                                                                          \
        return (CUresult)code;                                                                     \
    }                                                                                              \
    GPS_EXPORTED __typeof__(gps_hook_##name) name __attribute__((alias("gps_hook_" #name)));
#define GATED(name, parameters, arguments, stream)                                                 \
    GATED_AFTER(name, parameters, arguments, stream, false, false)
#define READ(name, parameters, arguments, stream)                                                  \
    GATED_AFTER(name, parameters, arguments, stream, size != 0 && gps_registry_closed(from), true)
#include "hooks.def"

/* Python's children and many others end with _exit: no handler runs, so this is where the memory
 * that others use is handed over and what we published is removed. */
#define EXIT(name)                                                                                 \
    GPS_EXPORTED void name(int status) {                                                           \
        gps_lifecycle_end();                                                                       \
        __typeof__(name) *real = (__typeof__(name) *)gps_libc_symbol(#name);                       \
        real(status);                                                                              \
        __builtin_unreachable();                                                                   \
    }
#include "hooks.def"
