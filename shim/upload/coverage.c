/* coverage.c - see coverage.h. */
#include "coverage.h"

#include <string.h>

/* The new range takes the place of those from `first` to before `last` that it meets or touches. */
bool gps_coverage_add(struct gps_coverage *coverage, uint64_t begin, uint64_t end) {
    struct gps_range *const all = coverage->ranges;
    unsigned first = 0;
    while (first < coverage->count && all[first].end < begin)
        first++;
    unsigned last = first;
    while (last < coverage->count && all[last].begin <= end)
        last++;
    if (begin >= end)
        return true;
    if (first == last && coverage->count == GPS_COVERAGE_RANGES)
        return false;
    if (first < last && all[first].begin < begin)
        begin = all[first].begin;
    if (first < last && all[last - 1].end > end)
        end = all[last - 1].end;
    memmove(&all[first + 1], &all[last], (coverage->count - last) * sizeof(*all));
    all[first] = (struct gps_range){begin, end};
    coverage->count = coverage->count - (last - first) + 1;
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
