/*
 * wanted_size.h - the size that the program allocates while an exporting rule waits for another
 * one: published in a slot of this process, for the report of an import that waits in vain.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

enum { GPS_WANTED_SIZE_MOST = 16 }; /* further ones are not counted */

/* The sizes of one rule; all zero at first, and it never moves. */
struct gps_wanted_size {
    uint64_t size, count; /* under the lock of the slots: the nearest size, and how often */
    unsigned slot;
    _Atomic int phase;
};

/* The program allocates a size that the rule does not take. Any thread; inside a gps_scope. */
void gps_wanted_size_note(struct gps_wanted_size *asked, const struct gps_rule *rule,
                          uint64_t size);
/* The rule takes an allocation: ends the publication. The same threads. */
void gps_wanted_size_end(struct gps_wanted_size *asked);

/* The size that a live process of this pid namespace publishes for the name. *count is at most
 * GPS_WANTED_SIZE_MOST. False: none. */
bool gps_wanted_size_of(uint32_t pid, const char *name, uint64_t *size, uint64_t *count);
