/*
 * call.h - which call of the program's is under way on this thread.
 *
 * The runtime layer notes what the user wrote (cudaFree) and from where; the driver layer notes
 * which driver function arrived. Reports, stacks and the caller globs of rules read it.
 * Thread-local, no lock, no cost to speak of. `inside` is not 0 while one of our wrappers runs: a
 * signal handler that ends the process then must not enter the locks it may have interrupted.
 */
#ifndef GPS_CALL_H
#define GPS_CALL_H

#include <stddef.h>

/* Where a call came from: the return address, and the caller's stack pointer (the wrapper's CFA).
 * Together they name one place in one frame; a walk of the stack begins there. */
struct gps_site {
    const void *address;
    const void *frame;
};
#define GPS_SITE_HERE ((struct gps_site){__builtin_return_address(0), __builtin_dwarf_cfa()})

struct gps_call {
    const char *runtime; /* "cudaFree", or NULL: the program called the driver itself */
    struct gps_site runtime_site;
    const char *driver; /* "cuMemFree_v2" */
    struct gps_site driver_site;
    unsigned inside;
};
extern __thread struct gps_call gps_call;

static inline void gps_call_enter(const char *driver, struct gps_site site) {
    gps_call.driver = driver;
    gps_call.driver_site = site;
    gps_call.inside++;
}

static inline void gps_call_leave(void) {
    gps_call.inside--;
}

/* As the user wrote it; NULL: none is under way. */
static inline const char *gps_call_name(void) {
    return !gps_call.inside ? NULL : gps_call.runtime ? gps_call.runtime : gps_call.driver;
}

static inline struct gps_site gps_call_site(void) {
    return !gps_call.inside   ? (struct gps_site){NULL, NULL}
           : gps_call.runtime ? gps_call.runtime_site
                              : gps_call.driver_site;
}

#endif
