/*
 * stack.h - walks this thread's stack.
 *
 * With libgcc's unwinder, linked in and hidden: glibc's backtrace would load a library into the
 * program at its first use. A few microseconds; trace.h remembers what was walked before. Needs the
 * unwind tables that every distribution builds with.
 */
#ifndef GPS_STACK_H
#define GPS_STACK_H

#include <stddef.h>
#include <stdint.h>

#include "call.h"
#include "log/log.h"

struct gps_step {
    uintptr_t address; /* return address */
    uintptr_t slot;    /* where on the stack it stands; 0: not known (in a register, or saved) */
};

/* The frames from a call site on, innermost first: the first is the site itself. Of a site that the
 * walk does not meet, only that. */
unsigned gps_stack_walk(struct gps_site from, struct gps_step *steps, unsigned max);
/* At the first CUDA call: what the executable is called. */
void gps_stack_start(void);
/* Fills in module, offset in it and build id of an address. */
void gps_stack_frame(uintptr_t address, struct gps_frame *frame);

#endif
