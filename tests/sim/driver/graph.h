/*
 * Graphs: what a stream has captured, in its order, or a program has made of nodes, to be run again
 * in the order in which they were added. A graph counts those that have it: the program, or an
 * instance and its launches. While a stream captures it is the stream's, under the lock of the
 * streams. An instance has a graph of its own with the same steps.
 */
#pragma once

#include "stream.h"

/* With one holder; NULL if there is no memory. */
CUgraph graph_create(void);
/* The work is the graph's on success. */
CUresult graph_add(CUgraph graph, const struct work *work, void *argument);
/* Lets go of it; NULL is nothing. */
void graph_drop(CUgraph graph);
