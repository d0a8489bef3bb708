/*
 * program.h - what a person calls this program, and with which arguments it was started.
 *
 * The name is the first of: GPUSHARE_PROGRAM; of an interpreter, the file name of the script that
 * it runs (cam.py of `python3 cam.py`), the module (`python3 -m package`), or of java the jar or
 * the main class; the file name of the executable. Code on the command line (-c, -e) has no name of
 * its own. The program that the loader was told to run is the executable (camera of `ld.so
 * ./camera`).
 */
#pragma once

#include <stddef.h>

#include "config/config.h"

struct gps_program {
    char name[GPS_GLOB_BYTES];
    char executable[GPS_GLOB_BYTES];
    char arguments[GPS_ARGUMENT_BYTES]; /* the arguments behind the name, without control characters
                                         */
    char rank[12]; /* a number: its place in a job of several processes; empty: it has none */
};

/* Never fails: a field that cannot be read is empty, and the executable "?". No malloc. */
void gps_program_self(struct gps_program *program);

/* The same for another process, without GPUSHARE_PROGRAM and rank. False: this process may not see
 * it, as one of another user. */
bool gps_program_of(uint32_t pid, struct gps_program *program);

/* The same from the text of /proc/self/cmdline (`count` bytes, each word with its NUL) and from
 * GPUSHARE_PROGRAM (NULL: not set); the executable is filled in. */
void gps_program_read(struct gps_program *program, const char *words, size_t count,
                      const char *given);
