/*
 * trace.h - the depot of stack traces: stacks are stored, and identified by numbers.
 *
 * A program allocates at few places. So a stack that was walked before is recognised by its call
 * site: the same return addresses must still lie at the same places of the stack. That takes tens
 * of nanoseconds. On machines that keep return addresses in a register, the stack is walked each
 * time. An allocation only records the 4 bytes of a number. Equal stacks have one hash, and one
 * number unless their frames differ in size. A stored stack is never moved or removed. The depot
 * has a fixed size; when it is full, new stacks are not stored. Safe from any thread; a look-up
 * takes no lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "call.h"
#include "log/log.h"

#define GPS_NO_TRACE 0u

/* Whether a stack has more to show, as an interpreter's frames. NO_MORE: not this time. */
enum gps_trace_more { GPS_TRACE_MORE, GPS_TRACE_NO_MORE, GPS_TRACE_NEVER_MORE };
/* The stack to show for the native one of the call under way, with at most `depth` frames: the
 * number that gps_trace_shown gave, or the trace itself. */
typedef uint32_t gps_trace_more_fn(uint32_t trace, unsigned depth, enum gps_trace_more *is);

/* At the first call: sets the most frames of a stack (0: no stack is taken), whether gps_trace_kept
 * stores stacks, as in mode = audit, and the function that it asks for more (or NULL). */
void gps_trace_start(unsigned depth, bool keep, gps_trace_more_fn *more);

/* The trace of a place that is no call of the vendor's, where gps_trace_kept stores stacks. */
uint32_t gps_trace_at(struct gps_site site);
/* The trace of the program's call under way, for a report on it. GPS_NO_TRACE: no call is under
 * way, or there is no room. */
uint32_t gps_trace_here(void);
/* The same for a report that may come later. GPS_NO_TRACE also if gps_trace_start disabled it. */
uint32_t gps_trace_kept(void);

/* --- more than the native stack --- */

/* The number of a stack of these frames, at most GPS_STACK_MAX, that is shown in place of a native
 * one; that one where there is no room. The frames' texts are padded with zeros. */
uint32_t gps_trace_shown(uint32_t trace, const struct gps_frame *frames, unsigned count);
/* The native stack of a trace. */
uint32_t gps_trace_native(uint32_t trace);

/* The return addresses of a trace, innermost first. Returns their number; they stay valid. */
unsigned gps_trace_addresses(uint32_t trace, const uintptr_t **addresses);
/* A trace's frames, with the modules when it was walked. Returns their number, at most `max`. */
unsigned gps_trace_frames(uint32_t trace, struct gps_frame *frames, unsigned max);
#define GPS_TRACE_HASH 0xcbf29ce484222325u /* the hash of no frame */
static inline uint64_t gps_trace_mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}
/* Marks a trace, with a number that is not 0. False: it has this mark already, or is none. */
bool gps_trace_mark(uint32_t trace, uint32_t mark);
/* The hash of a trace, equal for equal stacks; 0: no trace. */
uint64_t gps_trace_hash(uint32_t trace);

void gps_trace_reset(void); /* in a forked child: resets the lock; stored stacks stay valid */
