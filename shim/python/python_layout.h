/*
 * python_layout.h - where CPython's structures have what a stack is read from, by its version.
 */
#pragma once

#include "python_line.h"
#include "stack/module.h"

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

/* Which of them GPS_PYTHON_KNOWN is, for a sentence. */
#define GPS_PYTHONS_KNOWN "final releases from 3.8 to 3.15, free-threaded ones up to 3.13"

/* What the module is; fills in a known one. No lock, no allocation; keeps errno. */
enum gps_python_kind gps_python_in(const struct gps_module *module, struct gps_python *python);
