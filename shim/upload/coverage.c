/* coverage.c - see coverage.h. */
#include "coverage.h"

#include <string.h>

/* The first range that ends at or behind `at`: the first that a range beginning there can touch. */
static unsigned first_touching(const struct gps_coverage *coverage, uint64_t at) {
    unsigned i = 0;
    while (i < coverage->count && coverage->ranges[i].end < at)
        i++;
    return i;
}

static void replace(struct gps_coverage *coverage, unsigned first, unsigned last,
                    struct gps_range with) {
    memmove(&coverage->ranges[first + 1], &coverage->ranges[last],
            (coverage->count - last) * sizeof(with));
    coverage->ranges[first] = with;
    coverage->count = coverage->count - (last - first) + 1;
}

bool gps_coverage_add(struct gps_coverage *coverage, uint64_t begin, uint64_t end) {
    struct gps_range merged = {begin, end};
    const unsigned first = first_touching(coverage, begin);
    unsigned last = first;
    if (begin >= end)
        return true;
    for (; last < coverage->count && coverage->ranges[last].begin <= end; last++) {
        const struct gps_range *met = &coverage->ranges[last];
        merged.begin = met->begin < merged.begin ? met->begin : merged.begin;
        merged.end = met->end > merged.end ? met->end : merged.end;
    }
    if (first == last && coverage->count == GPS_COVERAGE_RANGES)
        return false;
    replace(coverage, first, last, merged);
    return true;
}

uint64_t gps_coverage_prefix(const struct gps_coverage *coverage) {
    return coverage->count && coverage->ranges[0].begin == 0 ? coverage->ranges[0].end : 0;
}

uint64_t gps_coverage_total(const struct gps_coverage *coverage) {
    uint64_t total = 0;
    for (unsigned i = 0; i < coverage->count; i++)
        total += coverage->ranges[i].end - coverage->ranges[i].begin;
    return total;
}
