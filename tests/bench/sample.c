/* sample.c - see sample.h. */
#include "sample.h"

#include "../common/system_headers.h"

static double read_clock(clockid_t which) {
    struct timespec time;
    clock_gettime(which, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

double now(void) {
    return read_clock(CLOCK_MONOTONIC);
}

double cpu_time(void) {
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double median_of(double *values, size_t count) {
    qsort(values, count, sizeof(*values), by_value);
    return values[count / 2];
}

double resident(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}
