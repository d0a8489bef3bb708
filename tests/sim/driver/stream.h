/*
 * Streams. Work runs at once, in the caller, unless something before it is unfinished; then it
 * waits in the stream's queue for a thread that lives as long as the queue is not empty. Order
 * comes from one running number: what must wait for what is decided by comparing numbers, so
 * nothing waits in a circle.
 */
#pragma once

#include "context.h"

/* What a stream does in its turn, and a graph again and again: a kind of work, and its argument. */
struct work {
    CUresult (*run)(void *argument); /* a failure loses the context */
    void (*end)(void *argument);     /* after the last run; NULL: free */
    /* What becomes of it when memory there changes while it runs: a code, or 0. NULL: nothing. */
    CUresult (*hurt)(const void *argument, uint64_t address, uint64_t size);
    /* What the driver tells of it as a node, which points into the argument. NULL: it is an empty
     * one. */
    void (*tell)(void *argument, CUgraphNodeParams *what);
    bool apart; /* never runs in the caller */
    bool brief; /* others wait for it: runs in a lost context, too, and is over when they see it */
    bool once;  /* no part of a graph: a capture drops it */
};

/*
 * Turns what a program calls a stream into one: NULL and the named ones, too. `per_thread`: NULL
 * means this thread's default stream. 400 for one of an unknown kind; a destroyed one is a crash,
 * as on the real driver.
 */
CUresult stream_resolve(CUstream named, bool per_thread, CUstream *stream);
/* That, under this name; where there is none the call ends. */
#define RESOLVED(name, named, per_thread)                                                          \
    CUstream name;                                                                                 \
    TRY(stream_resolve(named, per_thread, &(name)))
/*
 * Runs work in its turn, or adds it to what the stream captures; ends it, also on failure. 0, 900
 * or 906 if a capture forbids it.
 */
CUresult stream_submit(CUstream stream, const struct work *work, void *argument);
void work_end(const struct work *work, void *argument);
bool stream_capturing(CUstream stream);
CUcontext stream_context(CUstream stream);
/* Waits until all that was submitted before and concerns the stream is done: the state of its
 * context then. */
CUresult stream_wait(CUstream stream);
void stream_wait_context(CUcontext context);
void stream_wait_card(uint32_t card);
/* What is there has changed for these cards, a bit each: the contexts of their work that runs on it
 * are lost. */
void stream_hurt(uint64_t address, uint64_t size, uint64_t cards);
/* The context has ended: its streams go with it. */
void stream_end_context(CUcontext context);
/* This thread has used its per-thread default stream. */
bool stream_own_used(void);

/*
 * Captures. `forbidden` is for calls that no capture of this process may see (900), `implicit` for
 * those that only wait for the default stream (906). Both spoil the captures in their way.
 */
CUresult capture_forbidden(void);
/* 900 of the stream that captures, whatever the thread's mode. */
CUresult capture_own(CUstream stream);
CUresult capture_synchronize(CUcontext context);
CUresult capture_implicit(CUcontext context);
