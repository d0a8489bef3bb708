/*
 * python_frame.h - the Python frames of the calling thread.
 *
 * They are read without the interpreter's help or lock: other threads may run in it. So every
 * access goes through gps_peek, every list is bounded, and every object must have the type that
 * belongs there. Any other value ends the walk. No lock, no allocation; keeps errno.
 */
#pragma once

#include "log/log.h"
#include "python_layout.h"

struct gps_python_frame {
    uintptr_t code;
    uint32_t offset;  /* of the instruction, in bytes */
    bool entry;       /* the interpreter was entered for it: a native frame of its own ran it */
    uintptr_t runner; /* from 3.12 on: an address in that native frame; 0: not known */
};

/* The innermost ones first. Returns their number; 0: none, or one of them cannot be read. */
unsigned gps_python_frames(const struct gps_python *python, struct gps_python_frame *frames,
                           unsigned max);

/* Tables of lines that are longer are not read: then the line is not known. */
enum { GPS_PYTHON_TABLE_MAX = 256 << 10 };

/* Fills in file, function and line. `table` has room for GPS_PYTHON_TABLE_MAX bytes. */
bool gps_python_describe(const struct gps_python *python, const struct gps_python_frame *from,
                         uint8_t *table, struct gps_frame *frame);
