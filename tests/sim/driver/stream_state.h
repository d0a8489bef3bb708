/*
 * What streams and captures share: a stream, and all there are. A capture is a state of a stream
 * and needs the same lock, so these two files, and no others, see it.
 */
#pragma once

#include "stream.h"

enum { STREAM_MAGIC = 0x53747231, STREAM_DEAD = 0x53747230 };

struct task {
    const struct work *work;
    void *argument;
    uint64_t number;
    bool running;
    struct task *next;
};

struct CUstream_st {
    uint32_t magic;
    CUcontext context;
    unsigned flags;
    int priority;
    uint64_t id;
    bool legacy;              /* the default stream that waits for the blocking ones */
    bool busy;                /* a thread works on the queue */
    struct task *head, *tail; /* the head is at work */
    CUstreamCaptureStatus capture;
    CUstreamCaptureMode mode;
    pthread_t capturer;
    uint64_t capture_id;
    CUgraph graph; /* what was captured up to now */
    struct CUstream_st *next;
};

struct streams {
    pthread_mutex_t lock;
    pthread_cond_t progress;
    CUstream first; /* all there ever were, destroyed ones too */
    uint64_t number, next_id;
    unsigned captures; /* streams that capture, also spoilt */
};

extern struct streams streams;
static inline void streams_unlock_at(const char *end) {
    pthread_mutex_unlock(&streams.lock);
}
/* Locked from here to the end of the block. */
#define STREAMS_LOCKED()                                                                           \
    pthread_mutex_lock(&streams.lock);                                                             \
    const char locked_ __attribute__((unused, cleanup(streams_unlock_at))) = 0

/* Whether it waits for the default stream, and that for it. */
static inline bool stream_blocking(const struct CUstream_st *stream) {
    return !(stream->flags & CU_STREAM_NON_BLOCKING);
}

/* capture_implicit with the lock held. */
CUresult capture_implicit_locked(CUcontext context);
