/*
 * inifile.h - reads an INI file as a sequence of sections and keys, each with its line number.
 *
 * The reader passes one line at a time to inih, so that it knows the line of every key. It refuses
 * text that inih would skip or misread: a line or a section name beyond inih's limits, a NUL byte,
 * a continuation line, text behind a section's ']'. A refused line is reported, and the rest is
 * still read. A comment is a whole line that begins with ; or #, or the rest of a line from " ;"
 * on.
 *
 * No state, no malloc.
 */
#pragma once

#include <stddef.h>

#include "util/text.h"

#define GPS_INI_FILE ((size_t)1 << 20)

#define GPS_INI_LINE    199u /* inih's buffer of 200, less the NUL */
#define GPS_INI_SECTION 49u

/* Strings hold for the duration of the call. Lines count from 1. */
struct gps_ini_events {
    const char *headers; /* the allowed sections, for messages: "[gpushare] or [region NAME]" */
    size_t header_words; /* the fixed part of a section name: strlen("region ") */
    /* A NULL name: the header was refused, and the keys below it belong to no known section. */
    void (*section)(void *arg, unsigned line, const char *name);
    /* The value may be empty. */
    void (*key)(void *arg, unsigned line, const char *key, const char *value);
    void (*error)(void *arg, unsigned line, const char *message);
    void *arg;
};

/* A pure function. */
void gps_ini_read(const char *bytes, size_t count, const struct gps_ini_events *events);

struct gps_ini_bytes {
    char *bytes;
    size_t count;
};

/* Reads a file into memory, if it can be trusted: a regular file of at most 1 MiB that belongs to
 * root or to the user. Never blocks on a FIFO or a device. gps_ini_close unmaps the memory. 0 or
 * -errno, of which `wrong` says why; but not of -ENOENT: there is no such file. */
int gps_ini_open(const char *path, struct gps_ini_bytes *file, struct gps_text *wrong);
void gps_ini_close(struct gps_ini_bytes *file);
