/*
 * streams.h - the streams to which a process with merge rules gave work, and whether they are idle.
 *
 * Explicit streams are remembered one by one, until they are destroyed. The default streams of a
 * context are asked by its legacy stream, for which the per-thread ones are waited, too (recorded
 * on an H200, 2026-11-22: cuStreamQuery of the legacy stream is 600 while a per-thread one works).
 * An event stands for work of a stream that cannot be asked: one destroyed, or capturing a graph.
 * Any thread. No lock is held while the driver is asked.
 */
#pragma once

#include "driver/driver_ops.h"
#include "gate.h"

/* A stream that has been given work. */
struct gps_stream {
    uint64_t context, stream; /* the stream's own context; 0: the default ones of the context */
    uint64_t event;           /* behind its work, if it cannot be asked itself; else 0 */
};

extern _Atomic uint64_t gps_streams_epoch;
/* Returns the context. Without one the driver refuses the work. */
uint64_t gps_streams_add(uint64_t stream);

/* Whether the thread noted it lately. `context`: of a default stream the current one, else 0. */
static inline bool gps_streams_is_noted(const struct gps_gate_slot *slot, uint64_t stream,
                                        uint64_t context) {
    if (slot->epoch != atomic_load_explicit(&gps_streams_epoch, memory_order_relaxed))
        return false;
    for (unsigned i = 0; i < GPS_GATE_NOTED; i++)
        if (slot->noted[i].stream == stream && slot->noted[i].context == context)
            return true;
    return false;
}

/* Notes the stream that the thread gives work to, in a pass. */
void gps_streams_note(struct gps_gate_slot *slot, uint64_t stream);

/* Is called before the program destroys the stream. The stream's capture ends with it. */
void gps_streams_remove(uint64_t stream);
/* The context is gone, with its streams: those that got work before this epoch. */
void gps_streams_remove_context(uint64_t context, uint64_t before);

/* Before the driver is asked to begin a capture, in a pass: none begins while the gate is closed.
 * gps_streams_capture_ends, too, where it did not begin. */
void gps_streams_capture_begins(uint64_t stream);
void gps_streams_capture_ends(uint64_t stream);
bool gps_streams_any_capturing(void); /* a capture that was begun here is under way */
/* The stream is about to wait for an event, by which it may join a capture. In a pass. */
void gps_streams_may_join(uint64_t stream);

enum gps_streams_answer {
    GPS_STREAMS_IDLE,
    GPS_STREAMS_BUSY,
    GPS_STREAMS_UNKNOWN, /* a stream cannot be asked: that would end a capture */
};

/* These are called inside a gps_scope, with gps_swap_lock. */

/* With the gate closed: whether all streams, of a context or of any (0), are idle. `first` is the
 * first not known to be; with UNKNOWN it has the context whose work is to be waited for. */
enum gps_streams_answer gps_streams_look(uint64_t context, struct gps_stream *first);
/* Whether there was work of a stream that could not be noted, and in which context. It counts until
 * that context's work was waited for. */
bool gps_streams_lost(struct gps_stream *lost);
/* With the gate open: whether that stream is busy still. False, too, while a graph is captured. */
bool gps_streams_is_busy(const struct gps_stream *one);
/* The same for the stream with whose work a thread waits at the gate. */
bool gps_streams_is_stalled_busy(const struct gps_gate_stream *held);
/* Whether a context's streams are idle. With an open gate: BUSY, too, while a graph is captured. */
enum gps_streams_answer gps_streams_look_at(uint64_t context, bool closed);
/* Whether work of the context is noted: it has not been destroyed. */
bool gps_streams_knows(uint64_t context);
/* Frees the events behind work that has ended. No other thread looks meanwhile. */
void gps_streams_end_events(void);
/* A number for all work up to now, if the gate is closed: later work has this or a later epoch. */
uint64_t gps_streams_mark(void);
/* The work before the mark has been waited for in the context. This needs no lock. */
void gps_streams_waited(uint64_t context, uint64_t mark);

void gps_streams_reset(void); /* in a forked child */
