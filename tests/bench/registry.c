/*
 * registry.c - the library's own tables, without a driver and without a process around them: a
 * million live allocations, and a hundred thousand mappings of cuMemCreate's memory. Lines of name,
 * value: nanoseconds, and bytes.
 */
#include <stdio.h>

#include "registry/registry.h"
#include "registry/vmm_books.h"
#include "sample.h"

enum { COUNT = 1000000, STRIDE = 1024, MAPPINGS = 100000, BLOCK = 2 << 20 };

static uint64_t pointer(uint64_t i) {
    return 0x7f0000000000u + i * STRIDE;
}

/* In no order that a cache would like. */
static uint64_t shuffled(uint64_t i) {
    return i * 7368787 % COUNT;
}

static void map(uint64_t place) {
    const struct gps_vmm_mapping mapping = {.pointer = pointer(0) + place * BLOCK, .size = BLOCK};
    gps_vmm_mapped(gps_vmm_map(1), &mapping, true);
}

static void map_many(void) {
    const struct gps_vmm_memory memory = {.handle = 1, .size = BLOCK};
    gps_vmm_made(&memory);
    for (uint64_t i = 0; i < MAPPINGS; i++)
        map(i);
    const double start = now();
    for (uint64_t i = 0; i < MAPPINGS; i++) {
        const uint64_t place = i * 7368787 % MAPPINGS;
        gps_vmm_unmapped(gps_vmm_unmap(pointer(0) + place * BLOCK, BLOCK, false), true);
        map(place);
    }
    printf("map + unmap\t%.1f\n", (now() - start) / MAPPINGS);
}

int main(void) {
    double slowest = 0;
    uint64_t missing = 0;
    const double memory = resident();
    double start = now();
    for (uint64_t i = 0; i < COUNT; i++) {
        const struct gps_alloc alloc = {.pointer = pointer(i), .size = STRIDE, .context = 1};
        const double before = cpu_time();
        gps_registry_add(&alloc);
        const double took = cpu_time() - before;
        slowest = took > slowest ? took : slowest;
    }
    printf("insert, slowest\t%.0f\n", slowest);
    printf("bytes each\t%.1f\n", (resident() - memory) / COUNT);
    start = now();
    for (uint64_t i = 0; i < COUNT; i++) {
        struct gps_alloc found;
        missing += !gps_registry_find(pointer(shuffled(i)), &found);
    }
    printf("look-up\t%.1f\n", (now() - start) / COUNT);
    start = now();
    for (uint64_t i = 0; i < COUNT; i++) {
        struct gps_alloc taken;
        missing += !gps_registry_take(pointer(shuffled(i)), &taken);
    }
    printf("removal\t%.1f\n", (now() - start) / COUNT);
    map_many();
    return missing != 0;
}
