/*
 * Streams. Work runs at once, in the caller, unless something before it is unfinished; then it
 * waits in the stream's queue for a thread that lives as long as the queue is not empty. Order
 * comes from one running number: what must wait for what is decided by comparing numbers, so
 * nothing waits in a circle.
 */
#ifndef SIM_STREAM_H
#define SIM_STREAM_H

#include "context.h"

typedef void stream_work(void *argument);

/*
 * Turns what a program calls a stream into one: NULL and the named ones, too. `per_thread`: NULL
 * means this thread's default stream. 400 for one of an unknown kind; a destroyed one is a crash,
 * as on the real driver.
 */
CUresult stream_resolve(CUstream named, bool per_thread, CUstream *stream);
/*
 * Runs work in its turn. `host` work never runs in the caller. The argument is the work's to free.
 * 0, 900 or 906 if a capture forbids it; captured work is dropped (its argument freed).
 */
CUresult stream_submit(CUstream stream, stream_work *work, void *argument, bool host);
/* Waits until all that was submitted before and concerns the stream is done. */
void stream_wait(CUstream stream);
void stream_wait_context(CUcontext context);
void stream_wait_card(uint32_t card);
/* The context has ended: its streams go with it. */
void stream_end_context(CUcontext context);

/*
 * Captures. `forbidden` is for calls that no capture of this process may see (900), `implicit` for
 * those that only wait for the default stream (906). Both spoil the captures in their way.
 */
CUresult capture_forbidden(void);
CUresult capture_synchronize(CUcontext context);
CUresult capture_implicit(CUcontext context);

#endif
