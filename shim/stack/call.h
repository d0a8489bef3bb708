/*
 * call.h - the program's call that is under way on this thread.
 *
 * The hooks of the runtime record the name of the call in the source and its call site;
 * the hooks of the driver record the driver's function. Reports, stacks and the caller globs of
 * rules read them. The state is thread-local and needs no lock. `inside` is not 0 while a hook
 * runs: a signal handler that ends the process then must not take locks that it may have
 * interrupted. `handed_on` is the frame below which another library behind us has a call, or 0; a
 * call at or above it was left by longjmp.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A call site: the return address, and the caller's stack pointer (the CFA of the hook). Together
 * they identify one place in one frame, at which a walk of the stack begins. */
struct gps_site {
    const void *address;
    const void *frame;
};
#define GPS_SITE_HERE ((struct gps_site){__builtin_return_address(0), __builtin_dwarf_cfa()})

struct gps_call {
    const char *runtime; /* its name, or NULL: the program called the driver itself */
    struct gps_site runtime_site;
    const char *driver; /* by its ABI name */
    struct gps_site driver_site;
    unsigned inside;
    bool told; /* a report of it was sent */
    uintptr_t handed_on;
};
extern __thread struct gps_call gps_call;

static inline void gps_call_enter(const char *driver, struct gps_site site) {
    gps_call.driver = driver;
    gps_call.driver_site = site;
    gps_call.told = false;
    gps_call.inside++;
}

static inline void gps_call_leave(void) {
    gps_call.inside--;
}

/* The name of the call in the source; NULL: no call is under way. */
static inline const char *gps_call_name(void) {
    return !gps_call.inside ? NULL : gps_call.runtime ? gps_call.runtime : gps_call.driver;
}

static inline struct gps_site gps_call_site(void) {
    return !gps_call.inside   ? (struct gps_site){NULL, NULL}
           : gps_call.runtime ? gps_call.runtime_site
                              : gps_call.driver_site;
}
