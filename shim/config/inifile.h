/*
 * inifile.h - reads an INI file as a sequence of sections and keys, each with its line number.
 *
 * The reader passes one line at a time to inih, so that it knows the line of every key. It refuses
 * text that inih would skip or misread: a line or a section name beyond inih's limits, a NUL byte,
 * a continuation line, text behind a section's ']'. A refused line is reported, and the rest is
 * still read. A comment is a whole line that begins with ; or #, or the rest of a line from " ;"
 * on.
 *
 * Pure functions: no I/O, no allocation, no state.
 */
#pragma once

#include <stddef.h>

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

void gps_ini_read(const char *bytes, size_t count, const struct gps_ini_events *events);
