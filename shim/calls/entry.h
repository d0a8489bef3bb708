/*
 * entry.h - the one entry of every hooked call, and its end.
 *
 * A wrapper calls gps_entry_begin first: whether gpushare acts on this call at all. In a process
 * that has begun that takes two loads. Every other phase goes through gps_entry_slowly, so a phase
 * in which calls have to wait needs no other place. Any thread; no scope.
 */
#pragma once

#include "driver/driver_ops.h"
#include "gate/gate.h"
#include "lifecycle/lifecycle.h"
#include "process/process.h"
#include "stack/module.h"

/* The process's first call attaches to the driver and begins. A call that comes while the process
 * is in _exit does not return. */
bool gps_entry_slowly(gps_attach_fn *attach);

/* `slowly` is the front end's: gps_entry_slowly with its way to attach. */
static inline bool gps_entry_begin(bool (*slowly)(void)) {
    const enum gps_phase phase = gps_process_phase();
    return __builtin_expect(phase == GPS_PHASE_ON, 1) ||
           ((phase <= GPS_PHASE_SUSPENDED || phase == GPS_PHASE_LEAVING) && slowly());
}

/* The same for a call that `suspend` waits for: its end is gps_call_end. In a suspended process it
 * waits here, with the program's signals let in, unless it is part of a call under way. */
bool gps_entry_enter_slowly(bool (*slowly)(void), struct gps_counted_call *call);
static inline bool gps_entry_enter(bool (*slowly)(void), struct gps_counted_call *call) {
    call->slot = NULL;
    /* The phase is read first: gps_calls_counted is set by the time it is ON. */
    return __builtin_expect(gps_process_phase() == GPS_PHASE_ON && !gps_calls_counted, 1) ||
           gps_entry_enter_slowly(slowly, call);
}

/* The driver has refused a call. If the process began to end meanwhile, this does not return. */
void gps_entry_refused(int code);

/* The runtime has answered that it is not initialized: it knows that it fails in a forked child. */
void gps_entry_not_initialized(bool (*slowly)(void));

/* The runtime has refused a free because the driver has shut down. */
void gps_entry_freed_late(bool (*slowly)(void), uint64_t pointer);

/* The first: an IPC call gives the runtime no place for its result. The second: the runtime has
 * refused one without the driver. `closed`: what it was to close, or 0. */
bool gps_entry_no_output(bool (*slowly)(void)); /* whether it was reported */
void gps_entry_refused_early(bool (*slowly)(void), int code, uint64_t closed);

/* --- macros for the wrappers of each front end --- */

#define GPS_EXPORTED __attribute__((visibility("default")))

/* The name under which the program calls a wrapper. */
#define GPS_EXPORT(name)                                                                           \
    GPS_EXPORTED __typeof__(gps_hook_##name) name __attribute__((alias("gps_hook_" #name)));

/* The wrapper of _exit or its like. Python's children and many other programs end with it: no exit
 * handler runs, so here memory in use elsewhere is handed over and our files are removed. */
#define GPS_EXIT(name)                                                                             \
    GPS_EXPORTED void name(int status) {                                                           \
        gps_lifecycle_end();                                                                       \
        __typeof__(name) *real = (__typeof__(name) *)gps_next_symbol(#name);                       \
        real(status);                                                                              \
        __builtin_unreachable();                                                                   \
    }

/* The processes in which a call is hooked. */
enum gps_hooked {
    GPS_HOOKED_ALWAYS,
    GPS_HOOKED_COPIES, /* and fills: where a rule or an audit asks for them */
    GPS_HOOKED_WORK,   /* launches and streams: with a merge rule */
    GPS_HOOKED_EVENTS, /* records of events, and other uses of them: in an audit */
    GPS_HOOKED_GRAPHS, /* graphs that are made ready or changed, and the end of modules: with
                          frames, or in an audit */
    GPS_HOOKED_WAITS,  /* waits for events, and kernels: with a merge rule, or in an audit */
    GPS_HOOKED_TOLD,   /* questions about memory: with any rule, or vmm_ipc */
};
/* Whether this process hooks such calls. It begins if need be, to read the configuration. */
bool gps_entry_hooks(enum gps_hooked calls, bool (*slowly)(void));
