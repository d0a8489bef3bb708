/*
 * stack.h - walks this thread's stack.
 *
 * With libgcc's unwinder, linked in and hidden: glibc's backtrace would load a library into the
 * program at its first use. A few microseconds; for reports and for rules with a caller glob, never
 * on the path of an ordinary call. Needs the unwind tables that every distribution builds with.
 */
#ifndef GPS_STACK_H
#define GPS_STACK_H

#include <stddef.h>
#include <stdint.h>

#include "log.h"

/* Return addresses, innermost first, of at most `max` frames outside this library. */
unsigned gps_stack_walk(uintptr_t *addresses, unsigned max);
/* Fills in module, offset in it and build id of an address. */
void gps_stack_frame(uintptr_t address, struct gps_frame *frame);

#endif
