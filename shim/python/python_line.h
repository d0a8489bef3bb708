/*
 * python_line.h - the line tables of CPython's code objects.
 *
 * A table maps offsets of instructions, in bytes, to lines. It has had three formats. Pure
 * functions; any bytes are a table.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum gps_python_table {
    GPS_PYTHON_LNOTAB,    /* 3.8, 3.9: co_lnotab */
    GPS_PYTHON_LINETABLE, /* 3.10: co_linetable */
    GPS_PYTHON_LOCATIONS, /* from 3.11 on: co_linetable */
};

/* The line of the instruction at `offset`; `first` is the code's first line. 0: it has none. */
uint32_t gps_python_line(enum gps_python_table format, const uint8_t *table, size_t size,
                         uint32_t first, uint32_t offset);
