/*
 * python.h - a stack in which Python frames stand where the interpreter ran them.
 *
 * The interpreter's own frames, and those of ctypes and libffi, are folded into them. For reports,
 * and in an audit for later reports. To take a stack costs a walk and two system calls a frame; to
 * fill in its frames, ten times that.
 */
#pragma once

#include "log/log.h"
#include "stack/call.h"
#include "stack/trace.h"

/* Takes the stack from a call site on, which has the trace: at most `depth` native and as many
 * Python frames. NULL: no interpreter runs there, or its frames cannot be read. No lock, no malloc;
 * keeps errno. */
struct gps_python_stack *gps_python_take(struct gps_site from, uint32_t trace, unsigned depth);
void gps_python_drop(struct gps_python_stack *stack); /* may be NULL */
/* Once, where an interpreter was met whose layout is not known: a sentence for a report about its
 * missing frames. Else NULL. */
const char *gps_python_lack(void);
/* Equal for equal stacks in this process. */
uint64_t gps_python_hash(const struct gps_python_stack *stack);
/* Its frames, at most `max`, on the thread that took it and before the call returns. Returns their
 * number; 0: they cannot all be read. */
unsigned gps_python_fill(struct gps_python_stack *stack, struct gps_frame *frames, unsigned max);

/* A gps_trace_more_fn: the stack that an audit keeps of a call. */
uint32_t gps_python_trace(uint32_t trace, unsigned depth, enum gps_trace_more *is);
