/*
 * selftest.h - `gpushare doctor --selftest`: tries on this machine what gpushare is for.
 *
 * Processes of this tool share a buffer, hand one over, misuse one and merge two, in a namespace of
 * their own (scratch.c), and say in a sentence how that went.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "directory/store.h"
#include "run/vendor.h"

/* Takes `timeout` nanoseconds at most, and up to 6 seconds more where processes do not end. Prints
 * the steps and the machine's row. Returns the exit status. */
int selftest_run(bool json, uint64_t timeout);
/* Runs as one of the processes, `runtime` being "cuda" or "hip". Returns the exit status. */
int selftest_act(const char *runtime);

/* --- actor.c: the little program of a self-test, an ordinary user of the GPU --- */

/* It is this tool, started again, and does what its stdin says and answers on stdout. It finds
 * CUDA's driver or HIP's runtime by dlopen, so the tool is linked with neither. A line of stdin is
 *
 *     open            starts the runtime on the first GPU; answers its version and the GPU's name
 *     allocate BYTES
 *     fill BYTE       copies the byte to all of the allocation, and waits until it is there
 *     read            answers the byte, or "mixed" where not all are equal
 *     free            also what was freed before
 *     export          answers the handle
 *     import HANDLE
 *     close
 *
 * and each is answered by a line: the runtime's own code, and what else is said above. */

/* Answers until stdin ends. Returns the exit status. */
int actor_run(enum runtime runtime);

/* --- dialogue.c: starts actors, and has them speak the lines of a step in their order --- */

/* A line of a step. `says` NULL: the actor is told to end, and not awaited. In `says`, "$" is the
 * last exported handle. `answer`: NULL stands for "0"; of `export` only the code counts. */
struct dialogue_line {
    const char *actor, *says, *answer;
};

#define DIALOGUE_ACTORS 2

struct dialogue_actor {
    const char *name;
    int pid; /* 0: it has been reaped */
    int in, out;
};

struct dialogue {
    enum runtime runtime;
    uint64_t deadline; /* gps_clock_monotonic */
    struct dialogue_actor actors[DIALOGUE_ACTORS];
    char handle[160];
    char answer[320]; /* the last one */
    char *trouble;    /* why it went wrong; malloc'ed. NULL: it did not */
};

/* Notes what went wrong, if nothing did before. Returns false. */
bool dialogue_fails(struct dialogue *dialogue, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Starts this tool as actors of these names (NULL: one fewer), and has them open the GPU, all at
 * once. The environment is this process's, with GPUSHARE_PROGRAM. */
bool dialogue_begin(struct dialogue *dialogue, const char *const names[DIALOGUE_ACTORS]);
bool dialogue_speak(struct dialogue *dialogue, const struct dialogue_line *line);
/* Waits until all have ended, with 0; those that do not are killed. */
bool dialogue_end(struct dialogue *dialogue);

/* --- machine.c: what a machine is, for a row of docs/compatibility.md --- */

struct machine {
    char driver[64];       /* "580.159.04", "simulated" */
    char interface[32];    /* "CUDA 13.0", "HIP 7.0" */
    char gpu[128];         /* "NVIDIA H200" */
    char glibc[32];        /* "2.36" */
    const char *container; /* the engine, or "none" */
    char date[16];         /* "2026-11-25" */
};

/* `version` and `gpu` are what the runtime says of itself and of the first GPU. */
void machine_describe(struct machine *machine, enum runtime runtime, int version, const char *gpu);

/* --- scratch.c: a namespace and a directory for files that exist for one self-test --- */

/* They are removed by a process of their own, which waits until this one has called scratch_end or
 * has ended in any other way. So nothing is left where this process is killed. */

struct scratch {
    char name_space[64];
    char files[PATH_MAX];                /* the directory for files */
    char published[GPS_STORE_PATH + 65]; /* the namespace's */
    int alive;                           /* closed by our end */
    int remover;                         /* its pid */
};

/* Makes both, the namespace in the user's directory, and sets GPUSHARE_NAMESPACE. False: stderr
 * says why not. */
bool scratch_begin(struct scratch *scratch);
/* Ends processes of this tool that still serve the namespace, and waits until all is removed. */
void scratch_end(struct scratch *scratch);
