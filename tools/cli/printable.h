/*
 * printable.h - short values as text, to be printed where they are made.
 *
 *     printf("%s\n", printable_size(bytes).text);
 *
 * The text is part of the result, so it lasts until the end of the expression, or as long as the
 * variable that the result is assigned to.
 */
#pragma once

#include "directory/store.h"

struct printable {
    char text[128];
};

struct printable printable_size(uint64_t bytes); /* "64 MiB" */
/* Not rounded: "64 MiB", "6220800 bytes". */
struct printable printable_whole_size(uint64_t bytes);
struct printable printable_exact_size(uint64_t bytes); /* "64 MiB (67108864 bytes)" */
struct printable printable_duration(uint64_t nanos);   /* "30 s" */
/* The arguments of a program, cut for a list: "--model /very/long/path/..."; "" for NULL. */
struct printable printable_arguments(const char *arguments);
struct printable printable_id(const struct gps_id *id);
struct printable printable_uuid(const uint8_t uuid[GPS_UUID_BYTES]);
/* Its beginning, for a table: as long as tells it from all that were noted before. */
struct printable printable_short_uuid(const uint8_t uuid[GPS_UUID_BYTES]);
void printable_note_uuid(const uint8_t uuid[GPS_UUID_BYTES]);
/* Values as a configuration has them: "64MiB", "0..9". */
struct printable printable_size_value(uint64_t bytes);
struct printable printable_indices_value(uint64_t min, uint64_t max);
