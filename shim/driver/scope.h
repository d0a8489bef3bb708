/*
 * scope.h - the frame around our own work inside a call of the program's.
 *
 * Inside a scope that calls the driver, the kernel or libc: signals blocked but for those of
 * faults, cancellation off, errno kept, and this thread free to allocate and wait although another
 * may be capturing a graph. A given context is current inside.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/program_signals.h"

struct gps_scope {
    sigset_t signals; /* the mask before it */
    struct gps_program_signals outer;
    int error;
    int cancel;
    int capture;
    bool relaxed;
    bool entered;
};

/* No driver calls inside. */
void gps_scope_begin(struct gps_scope *scope);
/* Context 0 leaves the current one. Returns the driver's code; the scope has begun in any case. */
int gps_scope_enter(struct gps_scope *scope, uint64_t context);
void gps_scope_end(struct gps_scope *scope);

/* Each begins a scope that ends with the block; the second is for driver calls, and leaves the
 * current context current. */
#define GPS_SCOPE()                                                                                \
    struct gps_scope scope __attribute__((cleanup(gps_scope_end)));                                \
    gps_scope_begin(&scope)
#define GPS_DRIVER_SCOPE()                                                                         \
    struct gps_scope scope __attribute__((cleanup(gps_scope_end)));                                \
    gps_scope_enter(&scope, 0)

/* Waits for the device as a free does, inside a scope, with the program's signals: a kernel may
 * never end, and Ctrl-C must end the program. Without a lock. The driver's code. */
int gps_scope_synchronize(void);
/* The same for the work of a stream alone. */
int gps_scope_wait(uint64_t stream);
