/*
 * padding.h - the rest of the last block, behind memory that a rule gives.
 *
 * Drivers share whole blocks of 2 MiB, so memory that a rule exports or imports is rounded up to
 * them. Past the end that the program asked for, the driver refuses copies and fills of its own
 * memory, and the callers of these functions refuse them of this. Any thread; it needs no scope.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "range_tree.h"

/* The span that all paddings lie in. */
extern struct gps_range_span gps_padding_span;

/* Whether there is any padding, and whether a range may reach one. They take no lock. */
static inline __attribute__((always_inline)) bool gps_padding_any(void) {
    return __builtin_expect(__atomic_load_n(&gps_padding_span.highest, __ATOMIC_RELAXED) != 0, 0);
}
static inline __attribute__((always_inline)) bool gps_padding_near(uint64_t address,
                                                                   uint64_t size) {
    const uint64_t last = address + size - 1;
    return address < __atomic_load_n(&gps_padding_span.highest, __ATOMIC_RELAXED) &&
           last >= __atomic_load_n(&gps_padding_span.lowest, __ATOMIC_RELAXED);
}
/* Whether a part of a padding lies in the range; and the same of any range. The range may reach
 * past the padding, into other memory. */
bool gps_padding_within(uint64_t address, uint64_t size);
static inline bool gps_padding_reached(uint64_t address, uint64_t size) {
    return size && gps_padding_near(address, size) && gps_padding_within(address, size);
}

/* Memory that a rule has given, and the registry has; `extent` bytes are mapped there. The padding
 * counts as long as the registry has that memory. */
void gps_padding_add(uint64_t pointer, uint64_t size, uint64_t extent);
/* The memory is freed: returns the bytes mapped there, with which a failed free adds it again. */
uint64_t gps_padding_drop(uint64_t pointer, uint64_t size);
static inline uint64_t gps_padding_remove(uint64_t pointer, uint64_t size) {
    return gps_padding_any() ? gps_padding_drop(pointer, size) : size;
}
