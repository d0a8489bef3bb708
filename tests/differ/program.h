/*
 * program.h - what the modules of differ-program share: random.c (numbers that follow from a seed),
 * device.c (buffers, streams and host memory of a replica), mapped.c (memory of cuMemCreate),
 * beside.c (a second thread), steps.c (what a step does), program.c (the replicas).
 */
#pragma once

#include <cuda.h>

#include "random.h"

enum { MIB = 1 << 20, BUFFERS = 6, STREAMS = 5, SCRATCH = MIB, PINNED = 8 * MIB, TEXT = 160 };

struct buffer {
    CUdeviceptr at; /* 0: there is none */
    size_t size;    /* in bytes */
    bool pooled;
    int stream; /* index of the stream on which work uses it; -1: none does */
};

/* What a replica has. One thread uses it at a time, but for pieces of one buffer. */
struct replica {
    unsigned number;
    uint64_t seed;
    const char *kernels; /* a file */
    bool soaks;          /* it has a thread beside, and too few descriptors now and then */
    CUcontext context;
    CUstream streams[STREAMS]; /* the first two are the legacy one and the thread's own */
    CUevent turned;            /* ends the work of the stream before */
    CUfunction read, write, add, spin;
    unsigned claims;
    struct buffer buffers[BUFFERS], scratch, sum;
    struct buffer computed;             /* by kernels alone: a rule of its own takes it */
    unsigned char *pinned, *registered; /* PINNED bytes each */
    char text[TEXT];                    /* what the step does */
    uint64_t hash;                      /* of what it read */
    int code;                           /* the first that is not 0 */
};

/* program.c. Adds to what the step does. */
void replica_say(struct replica *replica, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Says so in a line that no bare program has, and ends the process. */
_Noreturn void program_fail(const char *what);

/* beside.c */
void beside_begin(struct replica *replica); /* if it soaks */
void beside_end(void);

/* device.c. Each keeps the first code that is not 0. */
bool device_begin(struct replica *replica); /* again after a reset, too */
void device_note(struct replica *replica, int code);
/* Waits for what another stream does with the buffer, or has the stream wait for it, so that each
 * result follows from the steps alone. */
void device_claim(struct replica *replica, struct buffer *buffer, int stream);
void device_finish(struct replica *replica, struct buffer *buffer);
void device_read(struct replica *replica, struct buffer *buffer, size_t from, size_t size);
CUresult device_launch(struct replica *replica, CUfunction kernel, int stream, void **arguments);

/* mapped.c: a step with memory of cuMemCreate, a look at all of it, and its end. */
void mapped_step(struct replica *replica, struct numbers *numbers);
void mapped_read(struct replica *replica);
void mapped_end(struct replica *replica);

/* steps.c: does the step of this number, and says in `text`, `code` and `hash` what came of it. */
void step_do(struct replica *replica, unsigned step);
