#include "scope.h"

#include <errno.h>
#include <pthread.h>

#include "driver_ops.h"
#include "passing.h"

const struct gps_operations *gps_operations;
void (*_Atomic gps_watch_again)(void);

void gps_scope_begin(struct gps_scope *scope) {
    scope->error = errno;
    scope->entered = scope->relaxed = false;
    gps_program_signals_enter(&scope->outer, &scope->signals);
    /* open, read and write are cancellation points; the driver call the program made may not be one
     */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &scope->cancel);
}

int gps_scope_enter(struct gps_scope *scope, uint64_t context) {
    gps_scope_begin(scope);
    scope->capture = 2; /* relaxed, with either vendor */
    scope->relaxed = gps_ops->relax(&scope->capture) == GPS_OK;
    int code = context ? gps_ops->enter(context) : GPS_OK;
    scope->entered = context && code == GPS_OK;
    return code;
}

void gps_scope_end(struct gps_scope *scope) {
    if (scope->entered)
        gps_ops->leave();
    if (scope->relaxed)
        gps_ops->relax(&scope->capture);
    int ignored;
    pthread_setcancelstate(scope->cancel, &ignored);
    gps_program_signals_leave(&scope->outer, &scope->signals);
    errno = scope->error;
}

int gps_scope_synchronize(void) {
    GPS_LET_SIGNALS_IN();
    return gps_ops->synchronize();
}

int gps_scope_wait(uint64_t stream) {
    GPS_LET_SIGNALS_IN();
    return gps_ops->stream_wait(stream);
}
