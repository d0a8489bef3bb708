/*
 * merged.h - how ls tells what merge rules save: the blocks of each GPU.
 *
 * A block is mapped once or more, also more than once by one process; without merging each mapping
 * would be memory of its own.
 */
#pragma once

#include "accounting.h"
#include "cli/json_tree.h"

/* A table, behind `before`, with a line for each GPU that has blocks, or processes with memory of
 * merge rules; returns how many. */
size_t merged_print(const struct accounting *accounting, const char *before);
/* The same as objects, in the shape of regions. */
void merged_append(const struct accounting *accounting, json_t *array);
