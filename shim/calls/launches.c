/* launches.c - see launches.h. */
#include "launches.h"

bool gps_capture_begin(struct gps_gate_pass *pass) {
    if (gps_merge_active)
        gps_gate_enter(pass);
    return gps_merge_active;
}

void gps_capture_begun(const struct gps_gate_pass *pass, int code) {
    if (code == GPS_OK)
        gps_streams_capture_begins();
    gps_gate_leave(pass);
}

/* One that was invalidated, or left work unjoined, is over, too. */
void gps_capture_ended(int code) {
    if (code == GPS_OK || code == GPS_CAPTURE_INVALIDATED || code == GPS_CAPTURE_UNJOINED)
        gps_streams_capture_ends();
}

void gps_stream_destroyed(uint64_t stream) {
    if (gps_merge_active)
        gps_streams_remove(stream);
}

void gps_wait_ended(int code) {
    gps_merge_end_freed(false);
    gps_work_checked(code);
}
