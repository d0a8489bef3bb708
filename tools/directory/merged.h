/*
 * merged.h - what merge rules save: the blocks of each GPU, and those of each process.
 *
 * A block is mapped once or more, also more than once by one process; without merging each mapping
 * would be memory of its own.
 */
#pragma once

#include "cli/json_tree.h"
#include "view.h"

/* The part of one process. */
struct merged_part {
    size_t blocks;   /* mappings */
    uint64_t mapped; /* bytes of them */
    uint64_t saved;  /* this process's part of what is saved; a block's mappings have equal parts */
    uint64_t own;    /* bytes that merge rules took, but that are not merged */
};

/* `device` NULL: on all GPUs. */
struct merged_part merged_part(const struct view *view, const struct gps_owner *owner,
                               const uint8_t device[GPS_UUID_BYTES]);

/* A table, behind `before`, with a line for each GPU that has blocks, or processes with memory of
 * merge rules; returns how many. */
size_t merged_print(const struct view *view, const char *before);
/* The same as objects, in the shape of regions. */
void merged_append(const struct view *view, json_t *array);
