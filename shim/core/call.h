/*
 * call.h - which call of the program's is under way on this thread.
 *
 * The runtime layer notes what the user wrote (cudaFree) and from where; the driver layer notes
 * which driver function arrived. Reports and the caller globs of rules read it. Thread-local, no
 * lock, no cost to speak of. `inside` is not 0 while one of our wrappers runs: a signal handler
 * that ends the process then must not enter the locks it may have interrupted.
 */
#ifndef GPS_CALL_H
#define GPS_CALL_H

struct gps_call {
    const char *runtime; /* "cudaFree", or NULL: the program called the driver itself */
    const void *runtime_caller;
    const char *driver; /* "cuMemFree_v2" */
    const void *driver_caller;
    unsigned inside;
};
extern _Thread_local struct gps_call gps_call;

static inline void gps_call_enter(const char *driver, const void *caller) {
    gps_call.driver = driver;
    gps_call.driver_caller = caller;
    gps_call.inside++;
}

static inline void gps_call_leave(void) {
    gps_call.inside--;
}

#endif
