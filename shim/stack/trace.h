/*
 * trace.h - stacks worth remembering: taken once, kept once, named by a number.
 *
 * A program allocates from few places. So a stack that was walked before is recognised by its call
 * site, by looking whether the same return addresses still stand in the same places (tens of
 * nanoseconds; on machines that return through a register it is walked each time), and equal stacks
 * are stored once: an allocation keeps 4 bytes. What is stored is never moved or forgotten, and
 * ends at a fixed size: after that, new stacks are not kept. Safe from any thread; a look-up takes
 * no lock.
 */
#ifndef GPS_TRACE_H
#define GPS_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "log/log.h"

#define GPS_NO_TRACE 0u

/* At the first CUDA call: how many frames a stack has at most (0: no stack is ever taken), and
 * whether gps_trace_kept is to keep any: mode = audit. */
void gps_trace_start(unsigned depth, bool keep);

/* The stack of the program's call under way, for a report on it: GPS_NO_TRACE when there is none,
 * or no room. */
uint32_t gps_trace_here(void);
/* The same, for a report that may come later; GPS_NO_TRACE unless stacks are kept. */
uint32_t gps_trace_kept(void);

/* Its return addresses, innermost first: their number. They stay where they are. */
unsigned gps_trace_addresses(uint32_t trace, const uintptr_t **addresses);
/* Its frames, with the modules as they were then: their number, at most `max`. */
unsigned gps_trace_frames(uint32_t trace, struct gps_frame *frames, unsigned max);
/* Equal for equal stacks; 0: no trace. */
uint64_t gps_trace_hash(uint32_t trace);

void gps_trace_reset(void); /* in a forked child: what is stored stays valid */

#endif
