#include "lock.h"

#include "assertion.h"

__thread uint32_t gps_locks_held;

static const char *const names[] = {"none",
#define NAME(rank, use) #rank,
                                    GPS_RANKS(NAME)};

void gps_lock_failed(uint32_t wrong, const char *becomes) {
    gps_assertion_failed("lock", names[31 - __builtin_clz(wrong)], becomes);
}

void gps_lock_out_of_order(unsigned rank) {
    gps_lock_failed(gps_locks_held, names[rank]);
}
