/*
 * streams.h - the streams that a process with merge rules has given work to, and whether they are
 * idle.
 *
 * Explicit streams are remembered one by one, until they are destroyed. The default streams of a
 * context are asked by its legacy stream, for which the per-thread ones are waited, too (recorded
 * on an H200, 2026-11-22: cuStreamQuery of the legacy stream is 600 while a per-thread one works).
 * While the program captures a graph no stream is asked, because that could end the capture. A
 * stream that is destroyed while it works leaves an event, which is asked instead. Any thread may
 * call these functions. No lock is held while the driver is asked.
 */
#pragma once

#include "driver/driver_ops.h"
#include "gate.h"

enum { GPS_DEFAULT_STREAMS = 2 /* 0, and the two with names: those of the current context */ };

extern _Atomic uint64_t gps_streams_epoch;
void gps_streams_add(uint64_t stream);

/* Whether it is the one that the thread noted last. */
static inline bool gps_streams_is_noted(const struct gps_gate_slot *slot, uint64_t stream) {
    uint64_t context = 0;
    return slot->stream == stream &&
           slot->epoch == atomic_load_explicit(&gps_streams_epoch, memory_order_relaxed) &&
           (stream > GPS_DEFAULT_STREAMS ||
            (gps_ops->context(&context) == GPS_OK && slot->context == context));
}

/* Notes the stream that the thread gives work to, in a pass. */
void gps_streams_note_slowly(struct gps_gate_slot *slot, uint64_t stream);
static inline void gps_streams_note(struct gps_gate_slot *slot, uint64_t stream) {
    if (slot && !gps_streams_is_noted(slot, stream))
        gps_streams_note_slowly(slot, stream);
}

/* Is called before the program destroys the stream. */
void gps_streams_remove(uint64_t stream);
/* The context is gone, with its streams. */
void gps_streams_remove_context(uint64_t context);

/* These two are called in a pass, so that no capture begins while the gate is closed. */
void gps_streams_capture_begins(void);
void gps_streams_capture_ends(void);
bool gps_streams_capturing(void);

/* Both with the gate closed, inside a gps_scope: whether all streams are known, and whether all of
 * them are idle. */
bool gps_streams_known(void);
bool gps_streams_idle(void);

void gps_streams_reset(void); /* in a forked child */
