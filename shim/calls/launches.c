#include "launches.h"

#include "findings/diagnose.h"
#include "gate/swap.h"
#include "ipc/refused_writes.h"
#include "merge/merger.h"
#include "merge/not_merging.h"

void gps_read_refused(uint64_t from, uint64_t size, int code) {
    if (gps_process_audits())
        gps_refused_copy(from, size, code);
}

bool gps_capture_begin(uint64_t stream, struct gps_gate_pass *pass) {
    if (!gps_gate_active)
        return false;
    gps_gate_enter(pass, stream);
    gps_streams_capture_begins(stream);
    return true;
}

void gps_capture_begun(uint64_t stream, const struct gps_gate_pass *pass, int code) {
    if (code != GPS_OK)
        gps_streams_capture_ends(stream);
    gps_gate_leave(pass);
}

bool gps_capture_join_begin(uint64_t stream, struct gps_gate_pass *pass) {
    if (!gps_gate_active)
        return false;
    gps_gate_enter(pass, stream);
    gps_streams_may_join(stream);
    return true;
}

/* A capture that was invalidated, or left work unjoined, is over, too. */
void gps_capture_ended(uint64_t stream, int code) {
    if (gps_gate_active &&
        (code == GPS_OK || code == GPS_CAPTURE_INVALIDATED || code == GPS_CAPTURE_UNJOINED))
        gps_streams_capture_ends(stream);
}

void gps_stream_destroyed(uint64_t stream) {
    if (gps_gate_active)
        gps_streams_remove(stream);
    if (gps_frames_exist())
        gps_frames_stream_ends(stream);
}

void gps_wait_ended(int code) {
    gps_swap_return();
    if (gps_pause_name()) /* the merger's thread may have found a bypass */
        gps_plain_look_and_make();
    gps_merge_end_freed(GPS_MERGE_AT_ONCE);
    gps_merger_retry();
    gps_wait_polled(code);
}

void gps_launch_given(uint64_t value, unsigned number) {
    if (gps_closed_may_have(value))
        gps_diagnose_argument(value, number);
}
