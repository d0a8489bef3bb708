/*
 * coverage.h - which bytes of a region have been written.
 *
 * Owns sorted ranges that neither overlap nor touch, in a fixed number of places: a program that
 * writes a region from so many ends at once that they do not suffice gets "full", and its region is
 * not tracked any more. Pure; the caller locks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define GPS_COVERAGE_RANGES 64u

struct gps_coverage {
    unsigned count;
    struct gps_range {
        uint64_t begin, end; /* the end is not in it */
    } ranges[GPS_COVERAGE_RANGES];
};

/* False: there is no place for one more range, and nothing was added. */
bool gps_coverage_add(struct gps_coverage *coverage, uint64_t begin, uint64_t end);

/* How much is covered from 0 on without a gap. */
uint64_t gps_coverage_prefix(const struct gps_coverage *coverage);

/* How much is covered in all. */
uint64_t gps_coverage_total(const struct gps_coverage *coverage);
