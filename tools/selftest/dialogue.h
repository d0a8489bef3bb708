/*
 * dialogue.h - starts actors (actor.h), and has them speak the lines of a step in their order.
 *
 * Owns the processes and pipes of one step. None outlives this process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "run/vendor.h"

/* A line of a step. `says` NULL: the actor is told to end, and is not waited for. In `says`, "$" is
 * the handle that was exported last. `answer`: NULL stands for "0"; of `export` only the code
 * counts. */
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
