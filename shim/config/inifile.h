/*
 * inifile.h - an INI file as a sequence of sections and keys, each with its line.
 *
 * The reader in front of inih: it hands inih one line at a time, so that it knows the line of every
 * key, and refuses what inih would swallow or misread: a line or a section name over inih's limits,
 * a NUL byte, a continuation line, text behind a section's ']'. What it refuses is reported and the
 * rest is still read. Comments are whole lines that begin with ; or #, and what follows " ;" in a
 * line.
 *
 * Pure: no I/O, no allocation, no state but inih's constants.
 */
#ifndef GPS_INIFILE_H
#define GPS_INIFILE_H

#include <stddef.h>

#define GPS_INI_LINE    199u /* inih's buffer of 200, less the NUL */
#define GPS_INI_SECTION 49u

/* Strings hold for the duration of the call. Lines count from 1. */
struct gps_ini_events {
    const char *headers; /* what a section may be, for messages: "[gpushare] or [region NAME]" */
    size_t header_words; /* how much of a section name is not the user's: strlen("region ") */
    /* NULL: the header was refused, what follows belongs to no known section. */
    void (*section)(void *arg, unsigned line, const char *name);
    /* The value may be empty. */
    void (*key)(void *arg, unsigned line, const char *key, const char *value);
    void (*error)(void *arg, unsigned line, const char *message);
    void *arg;
};

void gps_ini_read(const char *bytes, size_t count, const struct gps_ini_events *events);

#endif
