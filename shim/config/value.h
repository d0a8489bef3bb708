/*
 * value.h - parses and formats the values of the configuration.
 *
 * Pure functions on strings: no state, no allocation, no locale. A parser returns NULL and stores
 * the value, or stores nothing and returns what is wrong with the text ("no unit").
 */
#pragma once

#include "config.h"
#include "util/text.h"

/* The longest time that can be configured, in nanoseconds. A deadline (now + duration) cannot
 * overflow with it, and it fits into the milliseconds of poll, an int. */
#define GPS_DURATION_MAX (UINT64_C(500) * 3600 * 1000000000)

/* Decimal digits only, 0 to max. */
const char *gps_value_number(const char *text, uint64_t max, uint64_t *value);

/* "64MiB", "1g", "4096"; more than 0. B, KiB to TiB, K to T, in any case, are powers of 1024; no
 * unit is bytes; KB to TB are refused as ambiguous. */
const char *gps_value_size(const char *text, uint64_t *bytes);
/* The shortest text that parses to exactly this: "64MiB", "1000". */
void gps_value_size_text(uint64_t bytes, struct gps_text *text);

/* A range of sizes, from 1: "*", "64MiB", ">=1GiB" (<= > <), "1MiB..2MiB"; or one of indices, from
 * 0: "*", "3", "0..9", ">=4". As inclusive bounds, and back. */
struct gps_scale;
extern const struct gps_scale gps_sizes, gps_indices;
const char *gps_value_range(const char *text, const struct gps_scale *scale, uint64_t *min,
                            uint64_t *max);
void gps_value_range_text(uint64_t min, uint64_t max, const struct gps_scale *scale,
                          struct gps_text *text);

/* ns us ms s m min h, at most GPS_DURATION_MAX; only 0 may do without a unit. */
const char *gps_value_duration(const char *text, uint64_t *nanos);
/* The shortest text that parses to exactly this: "30s", "0s". */
void gps_value_duration_text(uint64_t nanos, struct gps_text *text);

/* The index of a value in a list such as "share, audit, off". */
const char *gps_value_choice(const char *text, const char *list, unsigned *place);
/* Adds the value at an index, or nothing if there is none. */
void gps_value_choice_text(unsigned place, const char *list, struct gps_text *text);
