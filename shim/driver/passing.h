/*
 * passing.h - the calls that a front end lets pass unseen while nobody asks for them: launches, and
 * uses of events.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>

/* Makes the front end see them again. NULL: it has let none pass since. Set after the first. */
extern void (*_Atomic gps_watch_again)(void);

/* Someone asks for them: after what he asks is set. Any thread. */
static inline void gps_watch(void) {
    void (*again)(void) = gps_watch_again;
    if (again && (again = atomic_exchange(&gps_watch_again, NULL)))
        again();
}
