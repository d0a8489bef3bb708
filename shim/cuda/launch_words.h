/*
 * launch_words.h - the words among the parameters of a kernel that may be pointers.
 *
 * The driver tells how wide each parameter is, from 12.4 on; with an older one no words are found.
 * Any thread; `f` may be a CUkernel, as it may for a launch.
 */
#pragma once

#include <stdbool.h>

#include "driver.h"

/* The parameters of a launch: `values` has the address of each, or `extra` that of the block in
 * which all of them lie side by side. */
struct gps_launch {
    CUfunction f;
    void **values, **extra;
};

/* The launch of a graph's node, by its parameters of version 2 or later. */
#define GPS_LAUNCH_OF(node)                                                                        \
    (struct gps_launch) {                                                                          \
        (node)->func ? (node)->func : (CUfunction)(node)->kern, (node)->kernelParams,              \
            (node)->extra                                                                          \
    }

struct gps_launch_word {
    uint64_t value;
    unsigned parameter; /* from 1 */
    unsigned offset;    /* in the parameter */
    bool whole;         /* the parameter has no other byte; else the program may never have written
                           this one: a struct by value has gaps, and arrays that are not full */
};

typedef void gps_launch_word_fn(void *arg, const struct gps_launch_word *word);
/* Calls fn for each word that is `from` or above, and below `to`. */
void gps_launch_each_word(const struct gps_launch *launch, uint64_t from, uint64_t to,
                          gps_launch_word_fn *fn, void *arg);

/* The kernel's name; "" where the driver does not tell it. */
const char *gps_launch_name(CUfunction function);

/* Before a launch: an audit looks at the kernel's arguments (gps_launch_given), and a check of
 * merge rules notes them (learn/canary.h). An audit does not count words in a struct. */
void gps_launch_look(const struct gps_launch *launch);

/* The launch is a graph's node: a program with frames notes the words that lie in its buffers. */
void gps_launch_note(const struct gps_launch *launch);
