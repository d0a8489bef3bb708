/*
 * passing.h - the calls that a front end lets pass while no module looks: launches, uses of events.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>

/* Makes the front end see them again. NULL: none has passed since. Set after the first passes. */
extern void (*_Atomic gps_watch_again)(void);

/* Called by a module that looks at them, after it has set its own flag. Any thread. */
static inline void gps_watch(void) {
    void (*again)(void) = gps_watch_again;
    if (again && (again = atomic_exchange(&gps_watch_again, NULL)))
        again();
}
