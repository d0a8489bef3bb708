#include "entry.h"

#include "findings/diagnose.h"
#include "frames/exchange.h"
#include "handles.h"
#include "mappings.h"
#include "memory.h"
#include "rules/rules.h"
#include "stack/call.h"
#include "writes/writes.h"

bool gps_entry_slowly(gps_attach_fn *attach) {
    gps_lifecycle_stay();
    gps_process_await_resume();
    return gps_lifecycle_begin(attach);
}

/* Whether the call may begin now; else it is ended. Its frame is noted before the phase is read. A
 * suspension sets the phase, then reads the frames: so one of the two sees the other. */
static bool call_may_begin(struct gps_counted_call *call) {
    gps_call_begin(call);
    if (call->before || gps_process_phase() != GPS_PHASE_SUSPENDED)
        return true;
    gps_call_end(call);
    return false;
}

bool gps_entry_enter_slowly(bool (*slowly)(void), struct gps_counted_call *call) {
    if (gps_call.handed_on > (uintptr_t)call)
        return false;
    gps_call.handed_on = 0;
    if (gps_process_phase() != GPS_PHASE_SUSPENDED && !gps_entry_begin(slowly))
        return false;
    while (gps_calls_counted && !call_may_begin(call))
        gps_process_await_resume();
    return true;
}

void gps_entry_refused(int code) {
    gps_lifecycle_stay();
    if (code == GPS_NOT_INITIALIZED && !gps_call.runtime)
        gps_lifecycle_not_initialized();
}

void gps_entry_not_initialized(bool (*slowly)(void)) {
    gps_call.inside++;
    if (gps_entry_begin(slowly))
        gps_lifecycle_not_initialized();
    gps_call.inside--;
}

void gps_entry_freed_late(bool (*slowly)(void), uint64_t pointer) {
    gps_call.inside++;
    if (gps_entry_begin(slowly))
        gps_memory_freed_late(pointer);
    gps_call.inside--;
}

bool gps_entry_no_output(bool (*slowly)(void)) {
    gps_call.inside++;
    const bool begun = gps_entry_begin(slowly);
    if (begun)
        gps_diagnose_no_output();
    gps_call.inside--;
    return begun;
}

void gps_entry_refused_early(bool (*slowly)(void), int code, uint64_t closed) {
    gps_call.inside++;
    if (code != GPS_NOT_INITIALIZED && gps_entry_begin(slowly))
        gps_handle_refused_early(code, closed);
    gps_call.inside--;
}

bool gps_entry_hooks(enum gps_hooked calls, bool (*slowly)(void)) {
    if (calls == GPS_HOOKED_ALWAYS)
        return true;
    if (gps_process_phase() != GPS_PHASE_SUSPENDED && !gps_entry_begin(slowly))
        return false;
    return calls == GPS_HOOKED_COPIES ? gps_writes_heard
           : calls == GPS_HOOKED_WAITS
               ? gps_gate_active || gps_frames_active || gps_process_audits()
           : calls == GPS_HOOKED_EVENTS ? gps_process_audits()
           : calls == GPS_HOOKED_GRAPHS ? gps_frames_active || gps_process_audits()
           : calls == GPS_HOOKED_TOLD   ? gps_rules_active || gps_mappings_have_tokens()
                                        : gps_gate_active || gps_frames_active;
}
