/*
 * allocations.c - the library's own tables, without a driver and without a process around them: a
 * million live allocations. Lines of name, value: nanoseconds, and bytes.
 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "registry/registry.h"

enum { COUNT = 1000000, STRIDE = 1024 };

static double clock_of(clockid_t which) {
    struct timespec time;
    clock_gettime(which, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double resident(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static uint64_t pointer(uint64_t i) {
    return 0x7f0000000000u + i * STRIDE;
}

/* In no order that a cache would like. */
static uint64_t shuffled(uint64_t i) {
    return i * 7368787 % COUNT;
}

int main(void) {
    double slowest = 0;
    uint64_t missing = 0;
    const double memory = resident();
    double start = clock_of(CLOCK_MONOTONIC);
    for (uint64_t i = 0; i < COUNT; i++) {
        const struct gps_alloc alloc = {.pointer = pointer(i), .size = STRIDE, .context = 1};
        const double before = clock_of(CLOCK_THREAD_CPUTIME_ID);
        gps_registry_add(&alloc);
        const double took = clock_of(CLOCK_THREAD_CPUTIME_ID) - before;
        slowest = took > slowest ? took : slowest;
    }
    printf("insert, slowest\t%.0f\n", slowest);
    printf("bytes each\t%.1f\n", (resident() - memory) / COUNT);
    start = clock_of(CLOCK_MONOTONIC);
    for (uint64_t i = 0; i < COUNT; i++) {
        struct gps_alloc found;
        missing += !gps_registry_find(pointer(shuffled(i)), &found);
    }
    printf("look-up\t%.1f\n", (clock_of(CLOCK_MONOTONIC) - start) / COUNT);
    start = clock_of(CLOCK_MONOTONIC);
    for (uint64_t i = 0; i < COUNT; i++) {
        struct gps_alloc taken;
        missing += !gps_registry_take(pointer(shuffled(i)), &taken);
    }
    printf("removal\t%.1f\n", (clock_of(CLOCK_MONOTONIC) - start) / COUNT);
    return missing != 0;
}
