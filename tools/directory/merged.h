/*
 * merged.h - how ls shows the merged blocks of each GPU, and what they save.
 *
 * A block is mapped once or more, also more than once by one process; without merging each mapping
 * would be memory of its own.
 */
#pragma once

#include "accounting.h"
#include "cli/json_tree.h"

/* Prints `before` and a table with a line for each GPU that has blocks, or processes with memory of
 * merge rules. Returns the number of lines. */
size_t merged_print(const struct accounting *accounting, const char *before);
/* Appends the same as objects, in the shape of regions. */
void merged_append(const struct accounting *accounting, json_t *array);
