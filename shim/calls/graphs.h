/*
 * graphs.h - graphs: the memory that their nodes use when they are made ready, and whether it is
 * still there when they are launched.
 *
 * In audits; a program with frames only notes that a graph uses such a buffer. Elsewhere nothing is
 * noted, and a launch costs a load. Between the calls no lock is held. Any thread may call the
 * functions, and none needs a scope but where said.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "registry/graph_books.h"

/* A walk over the nodes of a graph and of its children; further nodes are not looked at. */
enum { GPS_GRAPH_NODES = 4096 };
struct gps_graph_walk {
    struct gps_graph_uses uses;
    void *nodes[GPS_GRAPH_NODES]; /* the front end's */
};

/* Looks at the nodes of a graph, by the vendor's handle, and calls gps_graph_found for each address
 * that they use. In a scope. */
typedef void gps_graph_walk_fn(uint64_t graph, struct gps_graph_walk *walk);

/* `exec` is ready to be launched, and does what the graph says. */
void gps_graph_made(uint64_t exec, uint64_t graph, gps_graph_walk_fn *walk);

/* A node uses this address: `use` lacks the memory. True: it is the list's new last. In a scope. */
bool gps_graph_found(struct gps_graph_uses *uses, const struct gps_graph_use *use);

/* Whether memory begins there where other memory ends, which begins at *before: the address may be
 * meant as the end of that. In a scope. */
bool gps_graph_is_edge(uint64_t address, uint64_t *before);

/* Called before the graph's launch on a stream. */
void gps_graph_launched_slowly(uint64_t exec, uint64_t stream);
static inline bool gps_graph_launch_is_plain(void) {
    return __builtin_expect(gps_graph_ends == 0, 1);
}
