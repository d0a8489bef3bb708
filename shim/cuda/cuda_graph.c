/* cuda_graph.c - graphs that are made ready to be launched, changed and destroyed, and a look at
 * their nodes. Only an audit and a program with frames have these hooked. */
#include "calls/graphs.h"
#include "hooks.h"
#include "launch_words.h"
#include "util/text.h"
#include "written.h"

enum { DEEPEST = 8 };

/* --- a look at the nodes --- */

struct walk {
    struct gps_graph_uses *uses;
    struct gps_graph_use use; /* the node that the walk is at */
    struct gps_launch kernel;
    CUgraphNode *free; /* room for nodes */
    size_t left;       /* how many fit */
};

static bool found(struct walk *walk, uint64_t address, enum gps_graph_way way) {
    walk->use.address = address;
    walk->use.way = way;
    return gps_graph_found(walk->uses, &walk->use);
}

static void kernel_add_name(char name[GPS_GRAPH_NAME], CUfunction function) {
    struct gps_text text = gps_text_on(name, GPS_GRAPH_NAME);
    gps_text_str(&text, gps_launch_name(function));
}

static void see(void *seen, const struct gps_launch_word *word) {
    (void)word;
    *(bool *)seen = true;
}

/* Whether the kernel also has a pointer to memory that ends at the address: the end of a range is
 * no use of the memory that follows. */
static bool is_end(const struct walk *walk, uint64_t address) {
    uint64_t before;
    bool seen = false;
    if (gps_graph_is_edge(address, &before))
        gps_launch_each_word(&walk->kernel, before, address, see, &seen);
    return seen;
}

/* Only whole parameters count: unwritten bytes of a struct are often an old pointer. */
static void graph_look_at_word(void *arg, const struct gps_launch_word *word) {
    struct walk *const walk = arg;
    walk->use.argument = word->parameter;
    if (word->whole && !is_end(walk, word->value) && found(walk, word->value, GPS_NODE_KERNEL))
        kernel_add_name(walk->uses->list[walk->uses->count - 1].name, walk->kernel.f);
}

/* Whether kernels on the device may change the node's parameters. */
static bool is_updatable(CUgraphNode node) {
    CUkernelNodeAttrValue value = {.pad = {0}};
    return gps_calls.cuGraphKernelNodeGetAttribute &&
           gps_calls.cuGraphKernelNodeGetAttribute(
               node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value) == CUDA_SUCCESS &&
           value.deviceUpdatableKernelNode.deviceUpdatable;
}

static void look_at_kernel(struct walk *walk, CUgraphNode node) {
    CUDA_KERNEL_NODE_PARAMS_v2 kernel = {.func = NULL};
    if (!gps_calls.cuGraphKernelNodeGetParams_v2 ||
        gps_calls.cuGraphKernelNodeGetParams_v2(node, &kernel) != CUDA_SUCCESS)
        return;
    walk->kernel = GPS_LAUNCH_OF(&kernel);
    gps_launch_note(&walk->kernel);
    if (gps_process_audits() && !is_updatable(node))
        gps_launch_each_word(&walk->kernel, 0, UINT64_MAX, graph_look_at_word, walk);
}

static void look_at_copy(struct walk *walk, CUgraphNode node) {
    CUDA_MEMCPY3D copy;
    if (!gps_calls.cuGraphMemcpyNodeGetParams ||
        gps_calls.cuGraphMemcpyNodeGetParams(node, &copy) != CUDA_SUCCESS)
        return;
    const struct gps_write write = gps_3d_of(&copy, NULL);
    found(walk, write.source, GPS_NODE_READS);
    found(walk, write.to, GPS_NODE_WRITES);
}

static void look_at_fill(struct walk *walk, CUgraphNode node) {
    CUDA_MEMSET_NODE_PARAMS fill;
    if (gps_calls.cuGraphMemsetNodeGetParams &&
        gps_calls.cuGraphMemsetNodeGetParams(node, &fill) == CUDA_SUCCESS && fill.width &&
        fill.height)
        found(walk, fill.dst, GPS_NODE_FILLS);
}

static void look_at_nodes(struct walk *walk, CUgraph graph, unsigned parent, unsigned depth);

static void look_at_node(struct walk *walk, CUgraphNode node, unsigned depth) {
    CUgraphNodeType type;
    CUgraph child;
    if (!gps_calls.cuGraphNodeGetType || gps_calls.cuGraphNodeGetType(node, &type) != CUDA_SUCCESS)
        return;
    if (type == CU_GRAPH_NODE_TYPE_KERNEL)
        look_at_kernel(walk, node);
    else if (type == CU_GRAPH_NODE_TYPE_MEMCPY)
        look_at_copy(walk, node);
    else if (type == CU_GRAPH_NODE_TYPE_MEMSET)
        look_at_fill(walk, node);
    else if (type == CU_GRAPH_NODE_TYPE_GRAPH && depth < DEEPEST &&
             gps_calls.cuGraphChildGraphNodeGetGraph &&
             gps_calls.cuGraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS)
        look_at_nodes(walk, child, walk->use.node + 1, depth + 1);
}

static void look_at_nodes(struct walk *walk, CUgraph graph, unsigned parent, unsigned depth) {
    CUgraphNode *const nodes = walk->free;
    size_t count = walk->left;
    if (!count || !gps_calls.cuGraphGetNodes ||
        gps_calls.cuGraphGetNodes(graph, nodes, &count) != CUDA_SUCCESS)
        return;
    count = count < walk->left ? count : walk->left;
    walk->free += count;
    walk->left -= count;
    for (size_t i = 0; i < count; i++) {
        walk->use.node = (unsigned)i;
        walk->use.parent = parent;
        look_at_node(walk, nodes[i], depth);
    }
}

static void graph_look(uint64_t graph, struct gps_graph_walk *room) {
    struct walk walk = {
        .uses = &room->uses, .free = (CUgraphNode *)room->nodes, .left = GPS_GRAPH_NODES};
    look_at_nodes(&walk, (CUgraph)graph, 0, 0);
}

/* --- made, changed, destroyed --- */

#define MADE(name, parameters, arguments, exec)                                                    \
    CUresult gps_on_##name parameters {                                                            \
        const CUresult result = gps_real.name arguments;                                           \
        if (result == CUDA_SUCCESS)                                                                \
            gps_graph_made((uintptr_t)(exec), (uintptr_t)graph, graph_look);                       \
        return result;                                                                             \
    }
#define LOGGED (CUgraphExec * out, CUgraph graph, CUgraphNode * node, char *log, size_t size)
MADE(cuGraphInstantiate, LOGGED, (out, graph, node, log, size), *out)
MADE(cuGraphInstantiate_v2, LOGGED, (out, graph, node, log, size), *out)
MADE(cuGraphInstantiateWithFlags, (CUgraphExec * out, CUgraph graph, unsigned long long flags),
     (out, graph, flags), *out)
#define HOW (CUgraphExec * out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS * how)
MADE(cuGraphInstantiateWithParams, HOW, (out, graph, how), *out)
MADE(cuGraphInstantiateWithParams_ptsz, HOW, (out, graph, how), *out)

/* Forgets the graph before the driver's call: a free handle can be another graph's. */
#define FORGETS(name, parameters, arguments, noting)                                               \
    CUresult gps_on_##name parameters {                                                            \
        gps_graph_forget((uintptr_t)exec);                                                         \
        noting;                                                                                    \
        return gps_real.name arguments;                                                            \
    }
#define NOTE(...) what ? gps_launch_note(&__VA_ARGS__) : (void)0
FORGETS(cuGraphExecDestroy, (CUgraphExec exec), (exec), (void)0)
FORGETS(cuGraphExecKernelNodeSetParams,
        (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *what),
        (exec, node, what), NOTE((struct gps_launch){what->func, what->kernelParams, what->extra}))
FORGETS(cuGraphExecKernelNodeSetParams_v2,
        (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *what),
        (exec, node, what), NOTE(GPS_LAUNCH_OF(what)))
FORGETS(cuGraphExecChildGraphNodeSetParams, (CUgraphExec exec, CUgraphNode node, CUgraph child),
        (exec, node, child),
        gps_frames_exist() ? gps_graph_made((uintptr_t)exec, (uintptr_t)child, graph_look)
                           : (void)0)
FORGETS(cuGraphNodeSetEnabled, (CUgraphExec exec, CUgraphNode node, unsigned int enabled),
        (exec, node, enabled), (void)0)

/* Forgets the graph also if the call is refused: it may have changed a part. */
#define UPDATED(name, parameters, arguments)                                                       \
    CUresult gps_on_##name parameters {                                                            \
        gps_graph_forget((uintptr_t)exec);                                                         \
        const CUresult result = gps_real.name arguments;                                           \
        if (result == CUDA_SUCCESS)                                                                \
            gps_graph_made((uintptr_t)exec, (uintptr_t)graph, graph_look);                         \
        return result;                                                                             \
    }
UPDATED(cuGraphExecUpdate,
        (CUgraphExec exec, CUgraph graph, CUgraphNode *node, CUgraphExecUpdateResult *how),
        (exec, graph, node, how))
UPDATED(cuGraphExecUpdate_v2, (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *how),
        (exec, graph, how))
