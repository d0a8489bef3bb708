/*
 * launches.h - work on memory that the program gives to the device: launches, copies and fills,
 * captures, streams, and waits.
 *
 * In a process that merges all work passes the gate, so that a block is not swapped beneath it.
 * Copies and fills by which the program writes memory go to writes/writes.h as well. Between
 * beginning and end no lock is held. The first lines of each are in line, since a launch costs
 * nanoseconds. Any thread may call the functions, and none needs a scope.
 */
#pragma once

#include "frames/exchange.h"
#include "learn/canary.h"
#include "merge/work.h"
#include "merge/writable.h"
#include "process/process.h"
#include "registry/closed_ranges.h"
#include "registry/padding.h"
#include "writes/writes.h"

/* --- launches, and copies to the host: between gps_work_begin and gps_work_end --- */

/* Whether work passes the gate. If not, it is the driver's alone. */
static inline bool gps_launch_is_gated(void) {
    return __builtin_expect(gps_gate_active, 0);
}

/* Whether the launch needs no look. Arguments of kernels are looked at for a while after the
 * program has closed an import (gps_closed_looks), and where merge rules are checked. */
static inline bool gps_launch_is_plain(void) {
    return __builtin_expect(gps_process_phase() == GPS_PHASE_ON && !gps_launch_is_gated() &&
                                !gps_closed_looks && !gps_frames_active && !gps_canary_active,
                            1);
}
/* An argument that may be a pointer, and its number, from 1, before the launch. */
void gps_launch_given(uint64_t value, unsigned number);

/* Whether a read goes past the end of a rule's memory: the call is refused as by the driver. */
static inline bool gps_read_is_refused(uint64_t from, uint64_t size) {
    return size && (gps_work_read_is_refused(from, size) || gps_padding_reached(from, size));
}

/* The driver has answered to a copy to the host: an audit tells why it refused one. */
void gps_read_refused(uint64_t from, uint64_t size, int code);

/* --- functions that the library does not know --- */

#define GPS_UNKNOWN_NAME 64u /* room for a name, which is cut to fit */

/* The program calls such a function, or `surely`: may do so at any time from now on. */
static inline void gps_unknown_begins(const char *name, bool surely) {
    if (gps_gate_active)
        gps_plain_make(name, surely);
}

/* --- copies and fills --- */

/* Whether the write needs no look, unless the driver refuses it. */
static inline __attribute__((always_inline)) bool
gps_write_is_plain(const struct gps_write *write) {
    return !gps_write_all && !write->list && !write->lasting && write->size &&
           !gps_area_near(write->to, write->size) && !gps_area_near(write->source, write->reads) &&
           (!gps_padding_any() || (!gps_padding_near(write->to, write->size) &&
                                   !gps_padding_near(write->source, write->reads)));
}

/* --- captures and streams --- */

/* A capture begins in a pass. True: call the driver, then gps_capture_begun. False: the capture is
 * the driver's alone. */
bool gps_capture_begin(uint64_t stream, struct gps_gate_pass *pass);
void gps_capture_begun(uint64_t stream, const struct gps_gate_pass *pass, int code);
/* The same for a stream that waits for an event, and so may join a capture; then gps_gate_leave. */
bool gps_capture_join_begin(uint64_t stream, struct gps_gate_pass *pass);
/* The driver has answered to the end of a capture. */
void gps_capture_ended(uint64_t stream, int code);

/* The program is about to destroy a stream. */
void gps_stream_destroyed(uint64_t stream);

/* --- waits, after the driver's answer --- */

/* The program has waited: memory that was freed on a stream can be freed now. */
void gps_wait_ended(int code);

/* The program has asked whether work is done. */
static inline void gps_wait_polled(int code) {
    gps_work_checked(code);
    if (gps_frames_exist() && code == GPS_OK)
        gps_frames_waited();
}
