/*
 * launch_words.h - the words among the parameters of a kernel that may be pointers.
 *
 * The driver tells how wide each parameter is, from 12.4 on; an older one does not, and then there
 * are none. Any thread; `f` may be a CUkernel, as it may for a launch.
 */
#pragma once

#include <stdbool.h>

#include "driver.h"

/* What a launch gives its kernel: `values` has the address of each parameter, or `extra` says where
 * all of them lie side by side. */
struct gps_launch {
    CUfunction f;
    void **values, **extra;
};

/* Of the parameters of a graph's node, of version 2 or later. */
#define GPS_LAUNCH_OF(node)                                                                        \
    (struct gps_launch) {                                                                          \
        (node)->func ? (node)->func : (CUfunction)(node)->kern, (node)->kernelParams,              \
            (node)->extra                                                                          \
    }

struct gps_launch_word {
    uint64_t value;
    unsigned parameter; /* from 1 */
    unsigned offset;    /* in it */
    bool whole;         /* the parameter has no other byte; else the program may never have written
                           this one: a struct by value has gaps, and arrays that are not full */
};

typedef void gps_launch_word_fn(void *arg, const struct gps_launch_word *word);
/* Those that are `from` there or above, and below `to`. */
void gps_launch_each_word(const struct gps_launch *launch, uint64_t from, uint64_t to,
                          gps_launch_word_fn *fn, void *arg);

/* "" where the driver does not tell it. */
const char *gps_launch_name(CUfunction function);

/* Before a launch: an audit looks at what its kernel is given (gps_launch_given), and who
 * checks merge rules notes it (learn/canary.h). Words in a struct prove nothing to the first. */
void gps_launch_look(const struct gps_launch *launch);

/* A graph has it as a node: a program with frames notes the words that lie in one of its buffers.
 */
void gps_launch_note(const struct gps_launch *launch);
