/* scope.c - see scope.h. */
#include "scope.h"

#include <errno.h>
#include <pthread.h>

#include "driver_ops.h"
#include "util/program_signals.h"

const struct gps_operations *gps_operations;

/* The outermost scope has the program's mask. One that lies below this frame was left by longjmp.
 */
static void note_signals(struct gps_scope *scope) {
    scope->outermost = (uintptr_t)gps_program_signals < (uintptr_t)scope;
    if (scope->outermost)
        gps_program_signals = &scope->signals;
}

void gps_scope_begin(struct gps_scope *scope) {
    scope->error = errno;
    scope->entered = scope->relaxed = false;
    gps_program_signals_block(&scope->signals);
    note_signals(scope);
    /* open, read and write are cancellation points; the driver call the program made may not be one
     */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &scope->cancel);
}

int gps_scope_enter(struct gps_scope *scope, uint64_t context) {
    gps_scope_begin(scope);
    scope->capture = 2; /* CU_STREAM_CAPTURE_MODE_RELAXED */
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
    if (scope->outermost)
        gps_program_signals = NULL;
    int ignored;
    pthread_setcancelstate(scope->cancel, &ignored);
    sigprocmask(SIG_SETMASK, &scope->signals, NULL);
    errno = scope->error;
}

int gps_scope_synchronize(void) {
    sigset_t ours;
    sigprocmask(SIG_SETMASK, gps_signals_to_wait_with(), &ours);
    const int code = gps_ops->synchronize();
    sigprocmask(SIG_SETMASK, &ours, NULL);
    return code;
}

int gps_scope_wait(uint64_t stream) {
    sigset_t ours;
    sigprocmask(SIG_SETMASK, gps_signals_to_wait_with(), &ours);
    const int code = gps_ops->stream_wait(stream);
    sigprocmask(SIG_SETMASK, &ours, NULL);
    return code;
}
