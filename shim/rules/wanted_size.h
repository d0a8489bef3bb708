/*
 * wanted_size.h - what the program asks for while a rule that exports waits for another size:
 * published in a slot of this process, so that an import that waits in vain can tell.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"

enum { GPS_WANTED_SIZE_MOST = 16 }; /* nobody counts further */

/* Of one rule; all zero at first, and it never moves. */
struct gps_wanted_size {
    uint64_t size, count; /* under the lock of the slots: the nearest size, and how often */
    unsigned slot;
    _Atomic int phase;
};

/* The program asks for a size that the rule does not take. Any thread; inside a gps_scope. */
void gps_wanted_size_note(struct gps_wanted_size *asked, const struct gps_rule *rule,
                          uint64_t size);
/* The rule takes an allocation: nothing is told from now on. The same threads. */
void gps_wanted_size_end(struct gps_wanted_size *asked);

/* What a live process of this pid namespace tells of its rule for the name. *count is at most
 * GPS_WANTED_SIZE_MOST. False: nothing. */
bool gps_wanted_size_of(uint32_t pid, const char *name, uint64_t *size, uint64_t *count);
