/*
 * Graphs: what a stream has captured, in its order, to be run again. A graph counts those that have
 * it: the program, what was instantiated from it, each launch. Once its capture has ended it stays
 * as it is; till then it is the stream's, under the lock of the streams.
 */
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

#include "stream.h"

/* With one holder; NULL if there is no memory. */
CUgraph graph_create(void);
/* The work is the graph's on success. */
CUresult graph_add(CUgraph graph, const struct work *work, void *argument);
/* Lets go of it; NULL is nothing. */
void graph_drop(CUgraph graph);

#endif
