/* hooks.c - see hooks.h. Nothing here but what the table generates. The look-ups' own wrappers
 * stand beside what they hand out, in cuda_lookup.c. */
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

/* While nobody asks for launches and uses of events, each of their wrappers only jumps to the
 * driver. Otherwise it jumps to what watches, which so still finds the caller's address and frame.
 */
static void watch_again(void);
#define WAY(name, parameters, arguments)                                                           \
    static CUresult watched_##name parameters;                                                     \
    static __typeof__(watched_##name) *_Atomic way_##name = watched_##name;                        \
    CUresult gps_hook_##name parameters {                                                          \
        return atomic_load_explicit(&way_##name, memory_order_relaxed) arguments;                  \
    }                                                                                              \
    GPS_EXPORT(name)
/* Nobody asks: from the next call on, unless someone begins meanwhile. */
#define PASS(name, is_plain)                                                                       \
    if (is_plain()) {                                                                              \
        atomic_store(&way_##name, gps_real.name);                                                  \
        gps_watch_again = watch_again;                                                             \
        if (!is_plain())                                                                           \
            atomic_store(&way_##name, watched_##name);                                             \
    }
#define EVENT_USE(name, parameters, arguments)                                                     \
    WAY(name, parameters, arguments)                                                               \
    static CUresult watched_##name parameters {                                                    \
        GPS_WRAPPED(name, arguments, PASS(name, gps_event_use_is_plain), (void)0)                  \
    }

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
#define USE(kind, name, parameters, arguments) EVENT_USE(name, parameters, arguments)
#define DRIVER(kind, name, parameters, arguments)                                                  \
    GPS_WRAPPER(name, parameters, arguments, gps_call_count(),                                     \
                REFUSED_##kind(HAS_NOWHERE arguments, (int)result))
#include "hooks.def"

/* The thread's way through the gate where nothing is in the way. */
static inline __attribute__((always_inline)) struct gps_gate_slot *
at_once(uint64_t stream, const struct gps_gate_pass *here) {
    CUcontext context = NULL;
    if (stream <= GPS_DEFAULT_STREAMS && gps_calls.cuCtxGetCurrent(&context) != CUDA_SUCCESS)
        return NULL;
    return gps_work_quickly(stream, (uintptr_t)context, (uintptr_t)here);
}

static struct gps_gate_slot *quickly(uint64_t stream, const struct gps_gate_pass *here) {
    return at_once(stream, here);
}

/* Where nobody looks at copies, one is the driver's alone. One near no memory of a rule passes the
 * gate, and is told of if the driver refuses it. All others are for the list in writes/writes.c. */
#define WRITE(name, parameters, arguments, what)                                                   \
    CUresult gps_hook_##name parameters {                                                          \
        struct gps_gate_slot *slot = NULL;                                                         \
        struct gps_gate_pass pass;                                                                 \
        int code;                                                                                  \
        GPS_ENTER(name, arguments)                                                                 \
        if (__builtin_expect(!gps_writes_heard, 1))                                                \
            return gps_real.name arguments;                                                        \
        const struct gps_write asked = what;                                                       \
        if (gps_write_is_plain(&asked) &&                                                          \
            (!gps_gate_active || (slot = quickly(asked.stream, &pass)))) {                         \
            code = (int)gps_real.name arguments;                                                   \
            if (slot)                                                                              \
                gps_work_end_quickly(slot, code);                                                  \
            if (__builtin_expect(code == GPS_OK, 1))                                               \
                return CUDA_SUCCESS;                                                               \
            const struct gps_write refused = what;                                                 \
            gps_call_enter(#name, GPS_SITE_HERE);                                                  \
            gps_writes_refused(&refused, code);                                                    \
            gps_call_leave();                                                                      \
            return (CUresult)code;                                                                 \
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

/* --- what a call uses of buffers with frames --- */

/* The null stream means each thread's own in a function whose name ends in _ptds or _ptsz. */
#define STREAM_OF(name, stream)                                                                    \
    ((stream)                                                  ? (uintptr_t)(stream)               \
     : #name[sizeof(#name) > 6 ? sizeof(#name) - 6 : 0] == '_' ? (uintptr_t)PER_THREAD             \
                                                               : (uintptr_t)LEGACY)
#define FIRST_OF(first, ...) ((uintptr_t)(first))
#define IS_NO_STREAM(stream) (#stream[0] == 'N') /* the row's NULL: it is no stream's work */

static void touch_word(void *kernel, const struct gps_launch_word *word) {
    gps_frames_add(word->value, 0,
                   (uintptr_t)kernel + word->parameter + ((uint64_t)word->offset << 32));
}

static void touch_launch(uint64_t stream, CUfunction f, void **values, void **extra) {
    gps_frames_begin(stream);
    gps_launch_each_word(&(struct gps_launch){f, values, extra}, gps_frames_from, gps_frames_to,
                         touch_word, f);
    gps_frames_add_any((uintptr_t)f, false);
}

static void touch_work(uint64_t stream, uint64_t what, bool graph) {
    gps_frames_begin(stream);
    gps_frames_add_any(what, graph);
}

static void touch_read(uint64_t stream, uint64_t from, uint64_t size) {
    gps_frames_begin(stream);
    if (size)
        gps_frames_add(from, size, 2);
}

static inline CUresult touched(CUresult result, bool waited) {
    if (gps_frames_exist())
        gps_frames_end(waited && result == CUDA_SUCCESS);
    return result;
}

/* No call is noted: a launch has no report, and costs nanoseconds. */
#define GATED_AFTER(function, name, parameters, arguments, stream, refused, ungated, gated, copy,  \
                    touch)                                                                         \
    CUresult function parameters {                                                                 \
        struct gps_gate_slot *slot;                                                                \
        struct gps_gate_pass pass;                                                                 \
        int code;                                                                                  \
        GPS_ENTER(name, arguments)                                                                 \
        if (refused)                                                                               \
            return (CUresult)gps_refusal_code();                                                   \
        if (gps_frames_exist())                                                                    \
            touch;                                                                                 \
        if (!gps_launch_is_gated())                                                                \
            return touched(ungated, (copy) && IS_NO_STREAM(stream));                               \
        gated;                                                                                     \
        if (__builtin_expect((slot = quickly((uintptr_t)(stream), &pass)) != NULL, 1)) {           \
            code = (int)gps_real.name arguments;                                                   \
            gps_work_end_quickly(slot, code);                                                      \
        } else if (gps_work_begin((uintptr_t)(stream), copy, &pass, &code)) {                      \
            code = (int)gps_real.name arguments;                                                   \
            gps_work_end(&pass, code);                                                             \
        }                                                                                          \
        return touched((CUresult)code, (copy) && IS_NO_STREAM(stream));                            \
    }
#define GATED(name, parameters, arguments, stream)                                                 \
    GATED_AFTER(gps_hook_##name, name, parameters, arguments, stream, false,                       \
                gps_real.name arguments, (void)0, false,                                           \
                touch_work(STREAM_OF(name, stream), FIRST_OF arguments, false))                    \
    GPS_EXPORT(name)
/* In a process that merges the next launch goes straight through the gate: the function is there,
 * and the process has begun. */
#define LAUNCH(name, parameters, arguments, stream, f, values, extra)                              \
    WAY(name, parameters, arguments)                                                               \
    static CUresult merging_##name parameters {                                                    \
        struct gps_gate_pass here;                                                                 \
        struct gps_gate_slot *slot;                                                                \
        if (gps_process_phase() != GPS_PHASE_ON || !(slot = at_once((uintptr_t)(stream), &here)))  \
            return watched_##name arguments;                                                       \
        const CUresult result = gps_real.name arguments;                                           \
        gps_work_end_quickly(slot, (int)result);                                                   \
        return result;                                                                             \
    }                                                                                              \
    static void pass_##name(void) {                                                                \
        PASS(name, gps_launch_is_plain)                                                            \
    }                                                                                              \
    static GATED_AFTER(                                                                            \
        watched_##name, name, parameters, arguments, stream, false,                                \
        (pass_##name(), look(#name, GPS_SITE_HERE, f, values, extra), gps_real.name arguments),    \
        gps_frames_active ? (void)0 : atomic_store(&way_##name, merging_##name), false,            \
        touch_launch(STREAM_OF(name, stream), f, values, extra))
/* The kernels may end their context, so the look comes before it. */
#define GRAPH(name, parameters, arguments, stream)                                                 \
    GATED_AFTER(gps_hook_##name, name, parameters, arguments, stream, false,                       \
                (look_at_graph(#name, GPS_SITE_HERE, (uintptr_t)(graph), STREAM_OF(name, stream)), \
                 gps_real.name arguments),                                                         \
                (void)0, false, touch_work(STREAM_OF(name, stream), (uintptr_t)(graph), true))     \
    GPS_EXPORT(name)
#define READ(name, parameters, arguments, stream)                                                  \
    GATED_AFTER(gps_hook_##name, name, parameters, arguments, stream,                              \
                gps_read_is_refused(from, size),                                                   \
                told(#name, GPS_SITE_HERE, from, size, gps_real.name arguments), (void)0, true,    \
                touch_read(STREAM_OF(name, stream), from, size))                                   \
    GPS_EXPORT(name)

/* No audit merges. The kernel may end its context, so this comes before it. */
static inline void look(const char *name, struct gps_site site, CUfunction f, void **values,
                        void **extra) {
    if (__builtin_expect(gps_closed_looks != 0, 0)) {
        gps_call_enter(name, site);
        gps_launch_look(&(struct gps_launch){f, values, extra});
        gps_call_leave();
    }
}

static inline void look_at_graph(const char *name, struct gps_site site, uint64_t exec,
                                 uint64_t stream) {
    if (!gps_graph_launch_is_plain()) {
        gps_call_enter(name, site);
        gps_graph_launched_slowly(exec, stream);
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

static void watch_again(void) {
#define WATCH(name)                                                   atomic_store(&way_##name, watched_##name);
#define USE(kind, name, parameters, arguments)                        WATCH(name)
#define LAUNCH(name, parameters, arguments, stream, f, values, extra) WATCH(name)
#define GATED(name, parameters, arguments, stream)
#include "hooks.def"
}

#define EXIT(name) GPS_EXIT(name)
#include "hooks.def"
