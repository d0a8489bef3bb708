/*
 * python.h - a stack in which Python frames stand where the interpreter ran them.
 *
 * The interpreter's own frames, and those of ctypes and libffi, are folded into them. For reports
 * only: a read of a frame takes some microseconds.
 */
#pragma once

#include "call.h"
#include "log/log.h"

/* Whether a trace of at most `depth` frames may have passed an interpreter: it did, or its end is
 * not known. */
bool gps_python_may_be_in(uint32_t trace, unsigned depth);

/* The stack from a call site on, at most `depth` native and as many Python frames, and `room` in
 * all. Returns the number; 0: no interpreter runs there, or its frames cannot be read. No lock, no
 * malloc; keeps errno. */
unsigned gps_python_stack(struct gps_site from, unsigned depth, struct gps_frame *frames,
                          unsigned room);
