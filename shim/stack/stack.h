/*
 * stack.h - walks the stack of the calling thread, and describes its frames.
 *
 * Uses libgcc's unwinder, linked in and hidden, because glibc's backtrace would load a library into
 * the program at its first use. A walk takes a few microseconds; trace.h avoids it for stacks
 * walked before. It needs unwind tables, which every distribution has. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "call.h"
#include "log/log.h"

struct gps_step {
    uintptr_t address; /* return address */
    uintptr_t slot;    /* where it lies on the stack; 0: not known (in a register, or elsewhere) */
    uintptr_t begin; /* where its function's part of the stack begins; it ends at the next step's */
};

/* Walks from a call site outwards. Returns the number of frames, at most `max`, innermost first;
 * the first is the site itself. If the walk does not reach the site, the site is the only frame. */
unsigned gps_stack_walk(struct gps_site from, struct gps_step *steps, unsigned max);
/* Whether this thread is in a signal handler, as unwind tables tell. No lock, no allocation. */
bool gps_stack_in_handler(void);
/* Reads the path of the executable, once at the first call. */
void gps_stack_start(void);
/* Fills in the module of an address, the offset in the module and its build id. */
void gps_stack_frame(uintptr_t address, struct gps_frame *frame);
