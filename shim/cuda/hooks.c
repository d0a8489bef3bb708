/* hooks.c - see hooks.h. Nothing here but what the table generates. The look-ups' own wrappers
 * stand beside what they hand out, in cuda_lookup.c. */
#include "hooks.h"

#include <unistd.h>

#include "arguments.h"
#include "calls/launches.h"
#include "process/call_counter.h"
#include "written.h"

#define WRAP_lookup(name, parameters, arguments)
#define COUNTED(name, parameters, arguments)                                                       \
    GPS_WRAPPER(name, parameters, arguments, gps_call_count())
#define WRAP_context(name, parameters, arguments) COUNTED(name, parameters, arguments)
#define WRAP_memory(name, parameters, arguments)  COUNTED(name, parameters, arguments)
#define WRAP_ipc(name, parameters, arguments)     COUNTED(name, parameters, arguments)
#define WRAP_merge(name, parameters, arguments)   COUNTED(name, parameters, arguments)
#define WRAP_mapping(name, parameters, arguments) COUNTED(name, parameters, arguments)
#define WRAP_pool(name, parameters, arguments)    COUNTED(name, parameters, arguments)
#define WRAP_event(name, parameters, arguments)   GPS_WRAPPER(name, parameters, arguments, (void)0)
#define WRAP_wait(name, parameters, arguments)    GPS_WRAPPER(name, parameters, arguments, (void)0)
#define WRAP_told(name, parameters, arguments)    COUNTED(name, parameters, arguments)
#define DRIVER(kind, name, parameters, arguments) WRAP_##kind(name, parameters, arguments)
#include "hooks.def"

/* A copy that nobody listens to is the driver's alone. */
#define WRITE(name, parameters, arguments, what)                                                   \
    CUresult gps_hook_##name parameters {                                                          \
        struct gps_gate_pass pass;                                                                 \
        int code;                                                                                  \
        GPS_ENTER(name, arguments)                                                                 \
        if (__builtin_expect(!gps_write_listeners, 1))                                             \
            return gps_real.name arguments;                                                        \
        const struct gps_write write = what;                                                       \
        gps_call_enter(#name, GPS_SITE_HERE);                                                      \
        if (gps_write_begin(&write, &pass, &code)) {                                               \
            code = (int)gps_real.name arguments;                                                   \
            gps_write_end(&write, &pass, code);                                                    \
        }                                                                                          \
        gps_call_leave();                                                                          \
        return (CUresult)code;                                                                     \
    }                                                                                              \
    GPS_EXPORT(name)
#include "hooks.def"

/* No call is noted: a launch has no report, and costs nanoseconds. */
#define GATED_AFTER(name, parameters, arguments, refused, ungated, begin)                          \
    CUresult gps_hook_##name parameters {                                                          \
        struct gps_gate_pass pass;                                                                 \
        int code;                                                                                  \
        GPS_ENTER(name, arguments)                                                                 \
        if (refused)                                                                               \
            return CUDA_ERROR_INVALID_VALUE;                                                       \
        if (!gps_launch_is_gated())                                                                \
            return ungated;                                                                        \
        if (begin) {                                                                               \
            code = (int)gps_real.name arguments;                                                   \
            gps_launch_end(&pass, code);                                                           \
        }                                                                                          \
        return (CUresult)code;                                                                     \
    }                                                                                              \
    GPS_EXPORT(name)
#define GATED(name, parameters, arguments, stream)                                                 \
    GATED_AFTER(name, parameters, arguments, false, gps_real.name arguments,                       \
                gps_launch_begin((uintptr_t)(stream), &pass, &code))
#define LAUNCH(name, parameters, arguments, stream, f, values, extra)                              \
    GATED_AFTER(name, parameters, arguments, false,                                                \
                (look(#name, GPS_SITE_HERE, f, values, extra), gps_real.name arguments),           \
                gps_launch_begin((uintptr_t)(stream), &pass, &code))
#define READ(name, parameters, arguments, stream)                                                  \
    GATED_AFTER(name, parameters, arguments, gps_read_is_refused(from, size),                      \
                told(#name, GPS_SITE_HERE, from, size, gps_real.name arguments),                   \
                gps_read_begin((uintptr_t)(stream), &pass, &code))

/* No audit merges. The kernel may end its context, so this comes before it. */
static inline void look(const char *name, struct gps_site site, CUfunction f, void **values,
                        void **extra) {
    if (__builtin_expect(gps_launch_is_looked_at(), 0)) {
        gps_call_enter(name, site);
        gps_arguments_each(f, values, extra, gps_launch_given);
        gps_call_leave();
    }
}

static inline CUresult told(const char *name, struct gps_site site, uint64_t from, uint64_t size,
                            CUresult result) {
    if (__builtin_expect(result == CUDA_ERROR_INVALID_VALUE, 0)) {
        gps_call_enter(name, site);
        gps_read_refused(from, size, (int)result);
        gps_call_leave();
    }
    return result;
}
#include "hooks.def"

#define EXIT(name) GPS_EXIT(name)
#include "hooks.def"
