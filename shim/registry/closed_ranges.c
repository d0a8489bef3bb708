/* closed_ranges.c - see closed_ranges.h. Two threads may mix two ranges: then one is not found. */
#include "closed_ranges.h"

#include <stdatomic.h>

#include "util/forgotten.h"

enum { RANGES = 8 };

static struct {
    _Atomic uint32_t next;
    struct {
        _Atomic uint64_t base, end;
    } ranges[RANGES];
} state;
GPS_FORGOTTEN(state);

_Atomic uint32_t gps_closed_looks;
GPS_FORGOTTEN(gps_closed_looks);

void gps_closed_note(uint64_t base, uint64_t size) {
    const uint32_t at = atomic_fetch_add(&state.next, 1) % RANGES;
    state.ranges[at].base = base;
    state.ranges[at].end = base + size;
    gps_closed_looks = GPS_CLOSED_LOOKS;
}

void gps_closed_forget(uint64_t base) {
    for (unsigned i = 0; i < RANGES; i++)
        if (state.ranges[i].base == base)
            state.ranges[i].end = 0;
}

bool gps_closed_may_have(uint64_t address) {
    for (unsigned i = 0; i < RANGES; i++)
        if (address >= state.ranges[i].base && address < state.ranges[i].end)
            return true;
    return false;
}

void gps_closed_span(uint64_t *from, uint64_t *to) {
    *from = *to = 0;
    for (unsigned i = 0; i < RANGES; i++) {
        const uint64_t base = state.ranges[i].base, end = state.ranges[i].end;
        if (end && (!*to || base < *from))
            *from = base;
        if (end > *to)
            *to = end;
    }
}

void gps_closed_looked(void) {
    uint32_t left = gps_closed_looks;
    if (left)
        atomic_compare_exchange_strong(&gps_closed_looks, &left, left - 1);
}
