/*
 * inifile.h - reads an INI file as a sequence of sections and keys, each with its line number.
 *
 * A section is [NAME] and a key is NAME = VALUE (or NAME : VALUE), one to a line and from its
 * first character on. A comment is a line that begins with ; or #, or the rest of a line from " ;"
 * on. Text of other dialects of INI is refused rather than guessed at: a value that continues on
 * the next line, quotes, a # behind a value, text behind a section's ']', control characters. A
 * refused line is reported, and the rest is still read.
 *
 * The one limit is that of the file: 1 MiB, which bounds the memory and the time that a host spends
 * at its first CUDA call. Lines, names and values may fill it. No state, no malloc.
 */
#pragma once

#include <stddef.h>

#include "util/text.h"

#define GPS_INI_FILE ((size_t)1 << 20)

/* Strings hold for the duration of the call. Lines count from 1. */
struct gps_ini_events {
    const char *headers; /* the allowed sections, for messages: "[gpushare] or [region NAME]" */
    /* A NULL name: the header was refused, and the keys below it belong to no known section. */
    void (*section)(void *arg, unsigned line, const char *name);
    /* The value may be empty. */
    void (*key)(void *arg, unsigned line, const char *key, const char *value);
    void (*error)(void *arg, unsigned line, const char *message);
    void *arg;
};

/* Reads a text of `count` bytes, and writes into it: names and values are terminated where they
 * stand, the last of them at text[count], for which there must be room. */
void gps_ini_read(char *text, size_t count, const struct gps_ini_events *events);

/* Reads a file if it can be trusted: a regular file of at most 1 MiB that belongs to root or to the
 * user. Never blocks on a FIFO or a device. 0; or -errno, and then no event was called and `wrong`
 * says why. -ENOENT: there is no such file. */
int gps_ini_read_file(const char *path, const struct gps_ini_events *events,
                      struct gps_text *wrong);
