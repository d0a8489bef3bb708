/* hooks.c - see hooks.h. Nothing here but what the table generates. The wrappers of look-ups are in
 * cuda_lookup.c, beside the addresses that they hand out.
 *
 * A row becomes this, by the example of cuMemcpyHtoD_v2 (WRITE_SYNC), as each copy and fill;
 * writes/writes.c has the list of modules that look at one:
 *
 *     CUresult gps_hook_cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size) {
 *         GPS_ENTER(...)                     // the first call begins the process
 *         if (!gps_writes_heard)             // no module looks at copies
 *             return gps_real.cuMemcpyHtoD_v2(to, from, size);
 *         what = gps_upload_of(to, from, size, CU_STREAM_LEGACY);
 *         if (begins_at_once(what, ...)) {   // near no memory of a rule, and the gate is open
 *             result = gps_real.cuMemcpyHtoD_v2(to, from, size);
 *             gps_work_end_quickly(...);     // where it went through the gate
 *             return result;                 // a refusal is told: gps_writes_refused(what)
 *         }
 *         if (gps_writes_begin(what, ...)) { // else a module on the list has answered
 *             result = gps_real.cuMemcpyHtoD_v2(to, from, size);
 *             gps_writes_end(what, ...);
 *         }
 *         return result;
 *     }
 *
 * cuMemcpyHtoD_v2 is the exported alias of it. */
#include "hooks.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "calls/events.h"
#include "calls/graphs.h"
#include "calls/launches.h"
#include "calls/mappings.h"
#include "driver/passing.h"
#include "launch_words.h"
#include "process/call_counter.h"
#include "written.h"

/* --- what the table generates --- */

/* While launches and uses of events need no look, each of their wrappers only jumps to the driver.
 * Else it jumps to the watching function, which still finds the caller's address and frame. */
#define JUMPS_TO_TARGET(name, parameters, arguments)                                               \
    static CUresult watched_##name parameters;                                                     \
    static void *_Atomic target_##name = (void *)watched_##name;                                   \
    CUresult gps_hook_##name parameters {                                                          \
        __typeof__(watched_##name) *const target =                                                 \
            (__typeof__(target))atomic_load_explicit(&target_##name, memory_order_relaxed);        \
        return target arguments;                                                                   \
    }                                                                                              \
    GPS_EXPORT(name)
static void watch_again(void);
/* Stops looking from the next call on. Stores gps_watch_again before it calls is_plain again; a
 * module that begins meanwhile sets its flag before gps_watch: so one of the two looks again. */
static inline void stop_watching(void *_Atomic *target, void *driver, void *watched,
                                 bool (*is_plain)(void)) {
    atomic_store(target, driver);
    gps_watch_again = watch_again;
    if (!is_plain())
        atomic_store(target, watched);
}
#define STOP_WATCHING_IF(is_plain, name)                                                           \
    is_plain()                                                                                     \
        ? stop_watching(&target_##name, (void *)gps_real.name, (void *)watched_##name, is_plain)   \
        : (void)0

/* Whether a call for memory of cuMemCreate or pools has no place for its result, which comes first
 * where it has one. */
#define HAS_NOWHERE(first, ...)                                                                    \
    (_Generic((first),                                                                             \
         unsigned long long: false,                                                                \
         unsigned: false,                                                                          \
         CUmemoryPool: false,                                                                      \
         CUarrayMapInfo *: false,                                                                  \
         default: true) &&                                                                         \
     !(uintptr_t)(first))
#define REFUSED_context(nowhere, code)
#define REFUSED_memory(nowhere, code)
#define REFUSED_ipc(nowhere, code)
#define REFUSED_mapping(nowhere, code) gps_mappings_refused(nowhere, code)
#define REFUSED_pool(nowhere, code)    gps_mappings_refused(nowhere, code)
#define REFUSED_merge(nowhere, code)
#define REFUSED_wait(nowhere, code)
#define REFUSED_told(nowhere, code)
#define REFUSED_graph(nowhere, code)
#define REFUSED_module(nowhere, code)

#define LOOKUP(name, parameters, arguments)
#define USE(kind, name, parameters, arguments)                                                     \
    JUMPS_TO_TARGET(name, parameters, arguments)                                                   \
    static CUresult watched_##name parameters {                                                    \
        GPS_WRAPPED(name, arguments, STOP_WATCHING_IF(gps_event_use_is_plain, name), (void)0)      \
    }
#define DRIVER(kind, name, parameters, arguments)                                                  \
    GPS_WRAPPER(name, parameters, arguments, gps_call_count(),                                     \
                REFUSED_##kind(HAS_NOWHERE arguments, (int)result))
#include "hooks.def"

/* --- copies and fills --- */

/* Enters the gate by the quick way; `here` is in the wrapper's frame. NULL: that is not possible.
 * One copy is to be in line, the other serves all other places. */
static inline __attribute__((always_inline)) struct gps_gate_slot *
enter_gate_in_line(uint64_t stream, const struct gps_gate_pass *here) {
    CUcontext context = NULL;
    if (stream <= GPS_DEFAULT_STREAMS && gps_calls.cuCtxGetCurrent(&context) != CUDA_SUCCESS)
        return NULL;
    return gps_work_quickly(stream, (uintptr_t)context, (uintptr_t)here);
}

static struct gps_gate_slot *enter_gate(uint64_t stream, const struct gps_gate_pass *here) {
    return enter_gate_in_line(stream, here);
}

/* Whether it is near no rule's memory, and passes the gate quickly. *slot: NULL without a gate. */
static inline __attribute__((always_inline)) bool begins_at_once(const struct gps_write what,
                                                                 const struct gps_gate_pass *here,
                                                                 struct gps_gate_slot **slot) {
    *slot = NULL;
    return gps_write_is_plain(&what) &&
           (!gps_gate_active || (*slot = enter_gate(what.stream, here)) != NULL);
}

__attribute__((cold, noinline)) static CUresult
tell_refused(const char *name, struct gps_site site, const struct gps_write what, CUresult result) {
    gps_call_enter(name, site);
    gps_writes_refused(&what, (int)result);
    gps_call_leave();
    return result;
}

#define WRITE(name, parameters, arguments, what)                                                   \
    CUresult gps_hook_##name parameters {                                                          \
        struct gps_gate_slot *slot;                                                                \
        struct gps_gate_pass pass;                                                                 \
        int code;                                                                                  \
        GPS_ENTER(name, arguments)                                                                 \
        if (__builtin_expect(!gps_writes_heard, 1))                                                \
            return gps_real.name arguments;                                                        \
        if (begins_at_once(what, &pass, &slot)) {                                                  \
            const CUresult result = gps_real.name arguments;                                       \
            if (slot)                                                                              \
                gps_work_end_quickly(slot, (int)result);                                           \
            return __builtin_expect(result == CUDA_SUCCESS, 1)                                     \
                       ? result                                                                    \
                       : tell_refused(#name, GPS_SITE_HERE, what, result);                         \
        }                                                                                          \
        const struct gps_write write = what;                                                       \
        gps_call_enter(#name, GPS_SITE_HERE);                                                      \
        if (gps_writes_begin(&write, &pass, &code)) {                                              \
            code = (int)gps_real.name arguments;                                                   \
            gps_writes_end(&write, &pass, code);                                                   \
        }                                                                                          \
        gps_call_leave();                                                                          \
        return (CUresult)code;                                                                     \
    }                                                                                              \
    GPS_EXPORT(name)
#include "hooks.def"

/* --- buffers with frames that a call uses --- */

#define FIRST_OF(first, ...) ((uintptr_t)(first))

static void touch_word(void *kernel, const struct gps_launch_word *word) {
    gps_frames_add(word->value, 0,
                   (uintptr_t)kernel + word->parameter + ((uint64_t)word->offset << 32));
}

static void touch_launch(CUstream stream, CUfunction f, void **values, void **extra) {
    gps_frames_begin((uintptr_t)stream);
    gps_launch_each_word(&(struct gps_launch){f, values, extra}, gps_frames_from, gps_frames_to,
                         touch_word, f);
    gps_frames_add_any((uintptr_t)f, false);
}

static void touch_work(CUstream stream, uint64_t what, bool graph) {
    gps_frames_begin((uintptr_t)stream);
    gps_frames_add_any(what, graph);
}

static void touch_read(CUstream stream, uint64_t from, uint64_t size) {
    gps_frames_begin((uintptr_t)stream);
    if (size)
        gps_frames_add(from, size, 2);
}

/* `waited`: the work ended within the call. */
static inline CUresult touched(CUresult result, bool waited) {
    if (gps_frames_exist())
        gps_frames_end(waited && result == CUDA_SUCCESS);
    return result;
}

/* --- launches, graphs, and copies to the host --- */

/* Looks at a launch before the driver, because the kernel may end its context. No audit merges. */
static inline void hook_launch_look(const char *name, struct gps_site site, CUfunction f,
                                    void **values, void **extra) {
    if (__builtin_expect(gps_closed_looks != 0 || gps_canary_active, 0)) {
        gps_call_enter(name, site);
        gps_launch_look(&(struct gps_launch){f, values, extra});
        gps_call_leave();
    }
}

static inline void look_at_graph(const char *name, struct gps_site site, CUgraphExec exec,
                                 CUstream stream) {
    if (!gps_graph_launch_is_plain()) {
        gps_call_enter(name, site);
        gps_graph_launched_slowly((uintptr_t)exec, (uintptr_t)stream);
        gps_call_leave();
    }
}

static inline CUresult read_note_refusal(const char *name, struct gps_site site, uint64_t from,
                                         uint64_t size, CUresult result) {
    if (__builtin_expect(result == CUDA_ERROR_INVALID_VALUE, 0)) {
        gps_call_enter(name, site);
        gps_read_refused(from, size, (int)result);
        gps_call_leave();
    }
    return result;
}

/* The code of the call, for which the thread is inside the gate. No call is noted: a launch has no
 * report, and costs nanoseconds. */
#define INSIDE_GATE(call, stream, is_copy)                                                         \
    ({                                                                                             \
        struct gps_gate_slot *slot;                                                                \
        struct gps_gate_pass pass;                                                                 \
        int code;                                                                                  \
        if (__builtin_expect((slot = enter_gate((uintptr_t)(stream), &pass)) != NULL, 1)) {        \
            code = (int)call;                                                                      \
            gps_work_end_quickly(slot, code);                                                      \
        } else if (gps_work_begin((uintptr_t)(stream), is_copy, &pass, &code)) {                   \
            code = (int)call;                                                                      \
            gps_work_end(&pass, code);                                                             \
        }                                                                                          \
        (CUresult) code;                                                                           \
    })

#define GATED(name, parameters, arguments, stream)                                                 \
    CUresult gps_hook_##name parameters {                                                          \
        GPS_ENTER(name, arguments)                                                                 \
        if (gps_frames_exist())                                                                    \
            touch_work(STREAM_OF(name, stream), FIRST_OF arguments, false);                        \
        if (!gps_launch_is_gated())                                                                \
            return touched(gps_real.name arguments, false);                                        \
        return touched(INSIDE_GATE(gps_real.name arguments, stream, false), false);                \
    }                                                                                              \
    GPS_EXPORT(name)
/* In a process that merges the next launch goes straight through the gate: the driver has the
 * function, and the process has begun. */
#define LAUNCH(name, parameters, arguments, stream, f, values, extra)                              \
    JUMPS_TO_TARGET(name, parameters, arguments)                                                   \
    static CUresult merging_##name parameters {                                                    \
        struct gps_gate_pass here;                                                                 \
        struct gps_gate_slot *slot;                                                                \
        if (gps_process_phase() != GPS_PHASE_ON ||                                                 \
            !(slot = enter_gate_in_line((uintptr_t)(stream), &here)))                              \
            return watched_##name arguments;                                                       \
        const CUresult result = gps_real.name arguments;                                           \
        gps_work_end_quickly(slot, (int)result);                                                   \
        return result;                                                                             \
    }                                                                                              \
    static CUresult watched_##name parameters {                                                    \
        GPS_ENTER(name, arguments)                                                                 \
        if (gps_frames_exist())                                                                    \
            touch_launch(STREAM_OF(name, stream), f, values, extra);                               \
        if (!gps_launch_is_gated()) {                                                              \
            STOP_WATCHING_IF(gps_launch_is_plain, name);                                           \
            hook_launch_look(#name, GPS_SITE_HERE, f, values, extra);                              \
            return touched(gps_real.name arguments, false);                                        \
        }                                                                                          \
        if (!gps_frames_active)                                                                    \
            atomic_store(&target_##name, (void *)merging_##name);                                  \
        return touched(INSIDE_GATE(gps_real.name arguments, stream, false), false);                \
    }
#define GRAPH(name, parameters, arguments, stream)                                                 \
    CUresult gps_hook_##name parameters {                                                          \
        GPS_ENTER(name, arguments)                                                                 \
        if (gps_frames_exist())                                                                    \
            touch_work(STREAM_OF(name, stream), (uintptr_t)(graph), true);                         \
        if (!gps_launch_is_gated()) {                                                              \
            look_at_graph(#name, GPS_SITE_HERE, graph, STREAM_OF(name, stream));                   \
            return touched(gps_real.name arguments, false);                                        \
        }                                                                                          \
        return touched(INSIDE_GATE(gps_real.name arguments, stream, false), false);                \
    }                                                                                              \
    GPS_EXPORT(name)
/* A copy that is no stream's work, for which its row says NULL, has ended when it returns. */
#define READ(name, parameters, arguments, stream)                                                  \
    CUresult gps_hook_##name parameters {                                                          \
        const bool waits = #stream[0] == 'N';                                                      \
        GPS_ENTER(name, arguments)                                                                 \
        if (gps_read_is_refused(from, size))                                                       \
            return (CUresult)gps_refusal_code();                                                   \
        if (gps_frames_exist())                                                                    \
            touch_read(STREAM_OF(name, stream), from, size);                                       \
        if (!gps_launch_is_gated())                                                                \
            return touched(                                                                        \
                read_note_refusal(#name, GPS_SITE_HERE, from, size, gps_real.name arguments),      \
                waits);                                                                            \
        return touched(INSIDE_GATE(gps_real.name arguments, stream, true), waits);                 \
    }                                                                                              \
    GPS_EXPORT(name)
#include "hooks.def"

static void watch_again(void) {
#define WATCH(name)                                                   atomic_store(&target_##name, (void *)watched_##name);
#define USE(kind, name, parameters, arguments)                        WATCH(name)
#define LAUNCH(name, parameters, arguments, stream, f, values, extra) WATCH(name)
#define GATED(name, parameters, arguments, stream)
#include "hooks.def"
}

#define EXIT(name) GPS_EXIT(name)
#include "hooks.def"
