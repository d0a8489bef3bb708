/*
 * streams.h - the streams that a process with merge rules has given work to, and whether they are
 * idle.
 *
 * Explicit streams are remembered one by one, until they are destroyed. The default streams of a
 * context are asked by its legacy stream, for which the per-thread ones are waited, too (recorded
 * on an H200, 2026-11-22: cuStreamQuery of the legacy stream is 600 while a per-thread one works).
 * While the program captures a graph no stream is asked: that could end the capture. Of a stream
 * that is destroyed while it works an event is left, which is asked instead. Any thread.
 */
#pragma once

#include "gate.h"

extern _Atomic uint64_t gps_streams_epoch;
void gps_streams_add(uint64_t stream); /* of the current context; the default ones included */

/* Whether it is the one that the thread noted last. */
static inline bool gps_streams_is_noted(const struct gps_gate_slot *slot, uint64_t stream) {
    return slot->stream == stream &&
           slot->epoch == atomic_load_explicit(&gps_streams_epoch, memory_order_relaxed);
}

/* For a pass. */
static inline void gps_streams_note(struct gps_gate_slot *slot, uint64_t stream) {
    const uint64_t epoch = atomic_load_explicit(&gps_streams_epoch, memory_order_relaxed);
    if (!slot || gps_streams_is_noted(slot, stream))
        return;
    gps_streams_add(stream);
    slot->stream = stream;
    slot->epoch = epoch;
}

/* Before the program destroys it. */
void gps_streams_remove(uint64_t stream);
/* The context is gone, with its streams. */
void gps_streams_remove_context(uint64_t context);

/* In a pass, so that none begins while the gate is closed. */
void gps_streams_capture_begins(void);
void gps_streams_capture_ends(void);
bool gps_streams_capturing(void);

bool gps_streams_known(void); /* all of them; with the gate closed, inside a gps_scope */
/* With the gate closed, inside a gps_scope. */
bool gps_streams_idle(void);

void gps_streams_reset(void); /* in a forked child */
