/*
 * graph_books.h - the graphs ready to be launched, and what memory their nodes had when made.
 *
 * Noted memory was alive when it was noted. Memory that ends afterwards is marked at that moment,
 * by its address, so new memory at the same address is never taken for it. In audits. A lock of
 * their own, for some dozens of instructions; nothing comes from malloc. Where memory runs out, a
 * graph is not noted. Any thread; no scope.
 */
#pragma once

#include "freed_history.h"

enum gps_graph_way { GPS_NODE_KERNEL, GPS_NODE_READS, GPS_NODE_WRITES, GPS_NODE_FILLS };

#define GPS_GRAPH_NAME 96u /* room for a kernel's name, which is cut to fit */

/* Memory that was alive, from `base` on. */
struct gps_graph_memory {
    enum gps_freed_kind kind; /* its kind in the history: MEMORY, IMPORT or MAPPING */
    uint64_t base, size;
    uint32_t born; /* trace */
};

/* The first node of a graph that has an address of some memory. */
struct gps_graph_use {
    struct gps_graph_memory memory;
    uint64_t address;
    enum gps_graph_way way;
    unsigned node;     /* its number in its graph */
    unsigned parent;   /* 0: the graph itself; else the graph is a child, of node parent - 1 */
    unsigned argument; /* KERNEL: from 1 */
    char name[GPS_GRAPH_NAME]; /* KERNEL; empty: not known */
};

/* The uses of one graph, in the order in which they are found. */
enum { GPS_GRAPH_USES = 128 };
struct gps_graph_uses {
    unsigned count;
    struct gps_graph_use list[GPS_GRAPH_USES];
};

/* A graph is ready to be launched, or was replaced by another one. */
void gps_graph_note(uint64_t exec, const struct gps_graph_uses *uses);
/* Forgets a graph that has changed, or ends. */
void gps_graph_forget(uint64_t exec);

/* How often memory has ended since a graph was noted; 0: a launch need not be checked. */
extern _Atomic uint64_t gps_graph_ends;
/* Memory that begins at `base` ends; freed_history.h calls this. */
void gps_graph_memory_ends(enum gps_freed_kind kind, uint64_t base, const struct gps_freed *freed);
/* Whether any memory has ended since the last call for this graph. */
bool gps_graph_is_due(uint64_t exec);
/* The next use, from number *at on, of ended memory that was not told; *at becomes its number. */
bool gps_graph_over(uint64_t exec, unsigned *at, struct gps_graph_use *use,
                    struct gps_freed *freed);
void gps_graph_told(uint64_t exec, unsigned at);
