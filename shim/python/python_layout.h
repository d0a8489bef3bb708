/* python_layout.h - the offsets in CPython's structures from which a stack is read, by version. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "stack/module.h"

/* --- python_line.c: the line tables of code objects --- */

/* A table maps offsets of instructions, in bytes, to lines. It has had three formats. Pure
 * functions; any bytes are a table. */
enum gps_python_table {
    GPS_PYTHON_LNOTAB,    /* 3.8, 3.9: co_lnotab */
    GPS_PYTHON_LINETABLE, /* 3.10: co_linetable */
    GPS_PYTHON_LOCATIONS, /* from 3.11 on: co_linetable */
};

/* The line of the instruction at `offset`; `first` is the code's first line. 0: it has none. */
uint32_t gps_python_line(enum gps_python_table format, const uint8_t *table, size_t size,
                         uint32_t first, uint32_t offset);

/* --- python_layout.c --- */

/* Offsets in bytes. */
struct gps_python_layout {
    struct {
        uint16_t interpreters;
    } runtime;
    struct {
        uint16_t next, threads;
    } interpreter;
    struct {
        uint16_t next, interpreter, id, frame;
    } thread;
    uint16_t current; /* of 3.11 and 3.12: the frame, in what thread.frame points to */
    struct {
        uint16_t back, code;
        uint16_t at; /* up to 3.10 an index, then a pointer to the instruction */
        uint16_t
            entry; /* 3.11: whether the interpreter was entered for it; from 3.12 on: the owner */
    } frame;
    struct {
        uint16_t file, name, first_line, table;
        uint16_t instructions; /* from 3.11 on */
    } code;
    uint16_t type; /* of every object */
    struct {
        uint16_t length, state, ascii; /* where the characters begin: of ASCII, */
        uint16_t compact;              /* and of all others */
    } text;
    struct {
        uint16_t size, bytes;
    } bytes;
};

/* An interpreter of this process. */
struct gps_python {
    unsigned version; /* 8 to 15, of 3.8 to 3.15 */
    enum gps_python_table table;
    struct gps_python_layout layout;
    struct gps_module module;
    uintptr_t runtime, evaluate; /* _PyRuntime, and the function that runs a frame */
    uintptr_t code_type, frame_type, text_type, bytes_type;
};

/* UNKNOWN: it is a CPython whose layout is not known. */
enum gps_python_kind { GPS_PYTHON_NONE, GPS_PYTHON_UNKNOWN, GPS_PYTHON_KNOWN };

/* The releases of GPS_PYTHON_KNOWN, for a sentence. */
#define GPS_PYTHONS_KNOWN "final releases from 3.8 to 3.15, free-threaded ones up to 3.13"

/* The module's kind of interpreter; fills in a known one. No lock, no allocation; keeps errno. */
enum gps_python_kind gps_python_in(const struct gps_module *module, struct gps_python *python);
