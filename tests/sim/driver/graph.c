/* Graphs and their launches; see graph.h. */
#include "graph.h"

#include "state.h"
#include "transfer.h"

#include <stdlib.h>

struct step {
    atomic_uint holders; /* graphs */
    const struct work *work;
    void *argument;
};

/* A step that the program added. */
struct CUgraphNode_st {
    CUgraph graph;
    size_t index;
    CUgraphNode next;
};

struct CUgraph_st {
    atomic_uint holders;
    size_t count;
    struct step **steps;
    CUgraphNode nodes;
};

struct CUgraphExec_st {
    CUgraph graph;
};

CUgraph graph_create(void) {
    CUgraph graph = calloc(1, sizeof *graph);
    if (graph)
        graph->holders = 1;
    return graph;
}

static struct step *make_step(const struct work *work, void *argument) {
    struct step *step = malloc(sizeof *step);
    if (step)
        *step = (struct step){1, work, argument};
    return step;
}

static void drop_step(struct step *step) {
    if (--step->holders)
        return;
    work_end(step->work, step->argument);
    free(step);
}

CUresult graph_add(CUgraph graph, const struct work *work, void *argument) {
    struct step *step = make_step(work, argument);
    struct step **grown = realloc(graph->steps, (graph->count + 1) * sizeof *grown);
    if (grown)
        graph->steps = grown;
    if (!grown || !step) {
        free(step);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    graph->steps[graph->count++] = step;
    return CUDA_SUCCESS;
}

static CUgraph copy_of(CUgraph graph) {
    CUgraph copy = graph_create();
    struct step **steps = copy ? malloc((graph->count + 1) * sizeof *steps) : NULL;
    if (!steps) {
        free(copy);
        return NULL;
    }
    copy->steps = steps;
    for (; copy->count < graph->count; copy->count++) {
        steps[copy->count] = graph->steps[copy->count];
        steps[copy->count]->holders++;
    }
    return copy;
}

void graph_drop(CUgraph graph) {
    if (!graph || --graph->holders)
        return;
    for (size_t i = 0; i < graph->count; i++)
        drop_step(graph->steps[i]);
    for (CUgraphNode node = graph->nodes, next; node; node = next) {
        next = node->next;
        free(node);
    }
    free(graph->steps);
    free(graph);
}

CUresult CUDAAPI cuGraphDestroy(CUgraph graph) {
    CUresult result = state_check();
    if (!result && !graph)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result)
        graph_drop(graph);
    return result;
}

/* --- made by the program --- */

CUresult CUDAAPI cuGraphCreate(CUgraph *out, unsigned int flags) {
    CUresult result = state_check();
    if (result || !out || flags)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    *out = graph_create();
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The same for each kind of node. */
struct planned {
    const struct work *work;
    void *argument;
};

/* Rows that touch each other, or one. */
static CUresult plan_copy(const CUDA_MEMCPY3D *plan, struct planned *planned) {
    CUresult result = state_check();
    if (result || !plan)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    const bool host = plan->srcMemoryType == CU_MEMORYTYPE_HOST;
    const size_t rows = plan->Height * plan->Depth;
    const bool touch = (!plan->srcPitch || plan->srcPitch == plan->WidthInBytes) &&
                       (!plan->dstPitch || plan->dstPitch == plan->WidthInBytes);
    if ((rows > 1 && !touch) || plan->srcY || plan->srcZ || plan->dstY || plan->dstZ ||
        plan->dstMemoryType != CU_MEMORYTYPE_DEVICE ||
        (!host && plan->srcMemoryType != CU_MEMORYTYPE_DEVICE))
        return CUDA_ERROR_NOT_SUPPORTED;
    const uint64_t from = host ? (uint64_t)(uintptr_t)plan->srcHost : plan->srcDevice;
    return transfer_copy_node((struct end){plan->dstDevice + plan->dstXInBytes, SIDE_DEVICE},
                              (struct end){from + plan->srcXInBytes, host ? SIDE_ANY : SIDE_DEVICE},
                              plan->WidthInBytes * rows, &planned->work, &planned->argument);
}

static CUresult plan_fill(const CUDA_MEMSET_NODE_PARAMS *plan, struct planned *planned) {
    CUresult result = state_check();
    if (result || !plan || !plan->elementSize || !plan->width || !plan->height)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    if (plan->height > 1 && plan->pitch != plan->width * plan->elementSize)
        return CUDA_ERROR_NOT_SUPPORTED;
    return transfer_fill_node(plan->dst, plan->width * plan->height, plan->value, plan->elementSize,
                              &planned->work, &planned->argument);
}

static CUresult add(CUgraph graph, const struct planned *planned, CUgraphNode *out) {
    CUgraphNode node = out && graph ? malloc(sizeof *node) : NULL;
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (node)
        result = graph_add(graph, planned->work, planned->argument);
    if (result) {
        work_end(planned->work, planned->argument);
        free(node);
        return result;
    }
    *node = (struct CUgraphNode_st){graph, graph->count - 1, graph->nodes};
    graph->nodes = *out = node;
    return CUDA_SUCCESS;
}

static CUresult replace(CUgraph graph, size_t index, const struct planned *planned) {
    struct step *step =
        graph && index < graph->count ? make_step(planned->work, planned->argument) : NULL;
    if (!step) {
        work_end(planned->work, planned->argument);
        return CUDA_ERROR_INVALID_VALUE;
    }
    drop_step(graph->steps[index]);
    graph->steps[index] = step;
    return CUDA_SUCCESS;
}

/* A launch under way goes on with what it was launched with. */
static CUresult replace_in(CUgraphExec exec, CUgraphNode node, const struct planned *planned) {
    CUgraph changed = exec && node ? copy_of(exec->graph) : NULL;
    CUresult result = replace(changed, node ? node->index : 0, planned);
    if (result) {
        graph_drop(changed);
        return result;
    }
    graph_drop(exec->graph);
    exec->graph = changed;
    return CUDA_SUCCESS;
}

#define NODES(kind, type, plan)                                                                    \
    CUresult CUDAAPI cuGraphAdd##kind##Node(CUgraphNode *out, CUgraph graph,                       \
                                            const CUgraphNode *after, size_t count,                \
                                            const type *what, CUcontext context) {                 \
        struct planned planned;                                                                    \
        CUresult result = plan(what, &planned);                                                    \
        (void)after, (void)count, (void)context;                                                   \
        return result ? result : add(graph, &planned, out);                                        \
    }                                                                                              \
    CUresult CUDAAPI cuGraph##kind##NodeSetParams(CUgraphNode node, const type *what) {            \
        struct planned planned;                                                                    \
        CUresult result = plan(what, &planned);                                                    \
        return result ? result                                                                     \
                      : replace(node ? node->graph : NULL, node ? node->index : 0, &planned);      \
    }                                                                                              \
    CUresult CUDAAPI cuGraphExec##kind##NodeSetParams(CUgraphExec exec, CUgraphNode node,          \
                                                      const type *what, CUcontext context) {       \
        struct planned planned;                                                                    \
        CUresult result = plan(what, &planned);                                                    \
        (void)context;                                                                             \
        return result ? result : replace_in(exec, node, &planned);                                 \
    }
NODES(Memcpy, CUDA_MEMCPY3D, plan_copy)
NODES(Memset, CUDA_MEMSET_NODE_PARAMS, plan_fill)

static CUresult plan_any(const CUgraphNodeParams *what, struct planned *planned) {
    CUDA_MEMSET_NODE_PARAMS fill;
    if (!what)
        return CUDA_ERROR_INVALID_VALUE;
    if (what->type == CU_GRAPH_NODE_TYPE_MEMCPY)
        return plan_copy(&what->memcpy.copyParams, planned);
    if (what->type != CU_GRAPH_NODE_TYPE_MEMSET)
        return CUDA_ERROR_NOT_SUPPORTED;
    fill = (CUDA_MEMSET_NODE_PARAMS){.dst = what->memset.dst,
                                     .pitch = what->memset.pitch,
                                     .value = what->memset.value,
                                     .elementSize = what->memset.elementSize,
                                     .width = what->memset.width,
                                     .height = what->memset.height};
    return plan_fill(&fill, planned);
}

CUresult CUDAAPI cuGraphAddNode_v3(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
                                   const CUgraphEdgeData *edges, size_t count,
                                   CUgraphNodeParams *what) {
    struct planned planned;
    CUresult result = plan_any(what, &planned);
    (void)after, (void)edges, (void)count;
    return result ? result : add(graph, &planned, out);
}

CUresult CUDAAPI cuGraphNodeSetParams_v2(CUgraphNode node, CUgraphNodeParams *what) {
    struct planned planned;
    CUresult result = plan_any(what, &planned);
    return result ? result : replace(node ? node->graph : NULL, node ? node->index : 0, &planned);
}

/* --- instantiating --- */

static CUresult instantiate(CUgraphExec *out, CUgraph graph) {
    CUresult result = state_check();
    if (result || !out || !graph)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    *out = malloc(sizeof **out);
    if (!*out)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*out)->graph = copy_of(graph);
    if ((*out)->graph)
        return CUDA_SUCCESS;
    free(*out);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CUDAAPI cuGraphInstantiate(CUgraphExec *out, CUgraph graph, CUgraphNode *node, char *log,
                                    size_t size) {
    (void)node, (void)log, (void)size;
    return instantiate(out, graph);
}

CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *node,
                                       char *log, size_t size) {
    (void)node, (void)log, (void)size;
    return instantiate(out, graph);
}

CALL(cuGraphInstantiateWithFlags, (CUgraphExec * out, CUgraph graph, unsigned long long flags),
     flags & ~0xfull ? CUDA_ERROR_INVALID_VALUE : instantiate(out, graph))

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec exec) {
    CUresult result = state_check();
    if (result || !exec)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    graph_drop(exec->graph);
    free(exec);
    return CUDA_SUCCESS;
}

/* --- launching --- */

static CUresult run(void *argument) {
    CUgraph graph = argument;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < graph->count && !result; i++)
        result = graph->steps[i]->work->run(graph->steps[i]->argument);
    return result;
}

static CUresult hurt(const void *argument, uint64_t address, uint64_t size) {
    const struct CUgraph_st *graph = argument;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < graph->count && !result; i++)
        if (graph->steps[i]->work->hurt)
            result = graph->steps[i]->work->hurt(graph->steps[i]->argument, address, size);
    return result;
}

static void end(void *argument) {
    graph_drop(argument);
}

static const struct work replaying = {.run = run, .end = end, .hurt = hurt, .apart = true};

static CUresult launch(CUgraphExec exec, CUstream named, bool per_thread) {
    CUstream stream;
    CUresult result = stream_resolve(named, per_thread, &stream);
    if (result || !exec)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    exec->graph->holders++;
    return stream_submit(stream, &replaying, exec->graph);
}

BOTH(cuGraphLaunch, (CUgraphExec exec, CUstream stream), launch(exec, stream, per_thread))
