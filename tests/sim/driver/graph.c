/* Graphs and their launches; see graph.h. */
#include "graph.h"

#include "module.h"
#include "state.h"
#include "transfer.h"

struct step {
    atomic_uint holders; /* graphs */
    const struct work *work;
    void *argument;
};

/* A step by which the program knows it: it has added it, or asked for all. */
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
    TRY(state_check());
    REFUSE(!graph, CUDA_ERROR_INVALID_VALUE);
    graph_drop(graph);
    return CUDA_SUCCESS;
}

/* --- made by the program --- */

CUresult CUDAAPI cuGraphCreate(CUgraph *out, unsigned int flags) {
    TRY(state_check());
    REFUSE(!out || flags, CUDA_ERROR_INVALID_VALUE);
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
    TRY(state_check());
    REFUSE(!plan, CUDA_ERROR_INVALID_VALUE);
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
    TRY(state_check());
    REFUSE(!plan || !plan->elementSize || !plan->width || !plan->height, CUDA_ERROR_INVALID_VALUE);
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

/* One that was captured becomes a node when somebody asks. */
static CUgraphNode node_of(CUgraph graph, size_t index) {
    CUgraphNode node = graph->nodes;
    while (node && node->index != index)
        node = node->next;
    if (node)
        return node;
    node = malloc(sizeof *node);
    if (!node)
        return NULL;
    *node = (struct CUgraphNode_st){graph, index, graph->nodes};
    return graph->nodes = node;
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
        return result ? result : replace_in(exec, node, &planned);                                 \
    }
NODES(Memcpy, CUDA_MEMCPY3D, plan_copy)
NODES(Memset, CUDA_MEMSET_NODE_PARAMS, plan_fill)

static CUresult plan_kernel(const CUDA_KERNEL_NODE_PARAMS_v2 *what, struct planned *planned) {
    CUresult result = state_check();
    return result ? result : module_launch_node(what, &planned->work, &planned->argument);
}

CUresult CUDAAPI cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
                                         size_t count, const CUDA_KERNEL_NODE_PARAMS_v2 *what) {
    struct planned planned;
    CUresult result = plan_kernel(what, &planned);
    return result ? result : add(graph, &planned, out);
}

CUresult CUDAAPI cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                   const CUDA_KERNEL_NODE_PARAMS_v2 *what) {
    struct planned planned;
    CUresult result = plan_kernel(what, &planned);
    return result ? result : replace_in(exec, node, &planned);
}

static CUresult plan_any(const CUgraphNodeParams *what, struct planned *planned) {
    CUDA_MEMSET_NODE_PARAMS fill;
    REFUSE(!what, CUDA_ERROR_INVALID_VALUE);
    if (what->type == CU_GRAPH_NODE_TYPE_MEMCPY)
        return plan_copy(&what->memcpy.copyParams, planned);
    REFUSE(what->type != CU_GRAPH_NODE_TYPE_MEMSET, CUDA_ERROR_NOT_SUPPORTED);
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
    return result ? result : add(graph, &planned, out);
}

CUresult CUDAAPI cuGraphNodeSetParams_v2(CUgraphNode node, CUgraphNodeParams *what) {
    struct planned planned;
    CUresult result = plan_any(what, &planned);
    return result ? result : replace(node ? node->graph : NULL, node ? node->index : 0, &planned);
}

/* --- instantiating --- */

static CUresult instantiate(CUgraphExec *out, CUgraph graph) {
    TRY(state_check());
    REFUSE(!out || !graph, CUDA_ERROR_INVALID_VALUE);
    TRY(capture_forbidden());
    *out = malloc(sizeof **out);
    REFUSE(!*out, CUDA_ERROR_OUT_OF_MEMORY);
    (*out)->graph = copy_of(graph);
    if ((*out)->graph)
        return CUDA_SUCCESS;
    free(*out);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CALL(cuGraphInstantiate,
     (CUgraphExec * out, CUgraph graph, CUgraphNode *node, char *log, size_t size),
     instantiate(out, graph))
CALL(cuGraphInstantiate_v2,
     (CUgraphExec * out, CUgraph graph, CUgraphNode *node, char *log, size_t size),
     instantiate(out, graph))
CALL(cuGraphInstantiateWithFlags, (CUgraphExec * out, CUgraph graph, unsigned long long flags),
     flags & ~0xfull ? CUDA_ERROR_INVALID_VALUE : instantiate(out, graph))

static CUresult instantiate_with(CUgraphExec *out, CUgraph graph,
                                 CUDA_GRAPH_INSTANTIATE_PARAMS *how) {
    CUresult result =
        how && !(how->flags & ~0xfull) ? instantiate(out, graph) : CUDA_ERROR_INVALID_VALUE;
    if (how)
        how->result_out = result ? CUDA_GRAPH_INSTANTIATE_ERROR : CUDA_GRAPH_INSTANTIATE_SUCCESS;
    return result;
}

BOTH(cuGraphInstantiateWithParams,
     (CUgraphExec * out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *how),
     ((void)per_thread, instantiate_with(out, graph, how)))

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec exec) {
    TRY(state_check());
    REFUSE(!exec, CUDA_ERROR_INVALID_VALUE);
    graph_drop(exec->graph);
    free(exec);
    return CUDA_SUCCESS;
}

/* The graphs must have the same steps, which nobody checks here. */
CUresult CUDAAPI cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph,
                                      CUgraphExecUpdateResultInfo *how) {
    CUresult result = state_check();
    if (result || !exec || !graph || !how)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    *how = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED};
    REFUSE(exec->graph->count != graph->count, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    CUgraph changed = copy_of(graph);
    REFUSE(!changed, CUDA_ERROR_OUT_OF_MEMORY);
    graph_drop(exec->graph);
    exec->graph = changed;
    how->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
    return CUDA_SUCCESS;
}

static CUresult nothing(void *argument) {
    return CUDA_SUCCESS;
}

static const struct work resting = {.run = nothing};

/* A node that was disabled does not come back here. */
CUresult CUDAAPI cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled) {
    TRY(state_check());
    REFUSE(!exec || !node, CUDA_ERROR_INVALID_VALUE);
    return enabled ? CUDA_ERROR_NOT_SUPPORTED
                   : replace_in(exec, node, &(struct planned){&resting, NULL});
}

/* --- launching, also as a part of another graph --- */

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

static void tell(void *argument, CUgraphNodeParams *what) {
    what->type = CU_GRAPH_NODE_TYPE_GRAPH;
    what->graph.graph = argument;
}

static const struct work replaying = {
    .run = run, .end = end, .hurt = hurt, .tell = tell, .apart = true};

CUresult CUDAAPI cuGraphAddChildGraphNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
                                          size_t count, CUgraph child) {
    TRY(state_check());
    REFUSE(!child, CUDA_ERROR_INVALID_VALUE);
    CUgraph copy = copy_of(child);
    return copy ? add(graph, &(struct planned){&replaying, copy}, out) : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult launch(CUgraphExec exec, CUstream named, bool per_thread) {
    RESOLVED(stream, named, per_thread);
    REFUSE(!exec, CUDA_ERROR_INVALID_VALUE);
    TRY(capture_own(stream));
    exec->graph->holders++;
    return stream_submit(stream, &replaying, exec->graph);
}

BOTH(cuGraphLaunch, (CUgraphExec exec, CUstream stream), launch(exec, stream, per_thread))

/* --- what nodes do --- */

/* As many as there is room for; without room only how many there are. */
CUresult CUDAAPI cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count) {
    TRY(state_check());
    REFUSE(!graph || !count, CUDA_ERROR_INVALID_VALUE);
    const size_t room = nodes ? *count : 0;
    for (size_t i = 0; i < room; i++)
        nodes[i] = i < graph->count ? node_of(graph, i) : NULL;
    if (!nodes || room > graph->count)
        *count = graph->count;
    return CUDA_SUCCESS;
}

static void ask(CUgraphNode node, CUgraphNodeParams *what) {
    const struct step *step = node->graph->steps[node->index];
    *what = (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EMPTY};
    if (step->work->tell)
        step->work->tell(step->argument, what);
}

/* 1 of a node of another kind. */
static CUresult ask_for(CUgraphNode node, CUgraphNodeType type, const void *out,
                        CUgraphNodeParams *what) {
    TRY(state_check());
    REFUSE(!node || !out, CUDA_ERROR_INVALID_VALUE);
    ask(node, what);
    return what->type == type ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type) {
    CUgraphNodeParams what;
    TRY(state_check());
    REFUSE(!node || !type, CUDA_ERROR_INVALID_VALUE);
    ask(node, &what);
    *type = what.type;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 *out) {
    CUgraphNodeParams what;
    TRY(ask_for(node, CU_GRAPH_NODE_TYPE_KERNEL, out, &what));
    *out = (CUDA_KERNEL_NODE_PARAMS_v2){.func = what.kernel.func,
                                        .gridDimX = what.kernel.gridDimX,
                                        .gridDimY = what.kernel.gridDimY,
                                        .gridDimZ = what.kernel.gridDimZ,
                                        .blockDimX = what.kernel.blockDimX,
                                        .blockDimY = what.kernel.blockDimY,
                                        .blockDimZ = what.kernel.blockDimZ,
                                        .kernelParams = what.kernel.kernelParams};
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID which,
                                               CUkernelNodeAttrValue *out) {
    CUgraphNodeParams what;
    TRY(ask_for(node, CU_GRAPH_NODE_TYPE_KERNEL, out, &what));
    memset(out, 0, sizeof *out); /* none of them was set */
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *out) {
    CUgraphNodeParams what;
    TRY(ask_for(node, CU_GRAPH_NODE_TYPE_MEMCPY, out, &what));
    *out = what.memcpy.copyParams;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *out) {
    CUgraphNodeParams what;
    TRY(ask_for(node, CU_GRAPH_NODE_TYPE_MEMSET, out, &what));
    *out = (CUDA_MEMSET_NODE_PARAMS){.dst = what.memset.dst,
                                     .pitch = what.memset.pitch,
                                     .value = what.memset.value,
                                     .elementSize = what.memset.elementSize,
                                     .width = what.memset.width,
                                     .height = what.memset.height};
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *out) {
    CUgraphNodeParams what;
    TRY(ask_for(node, CU_GRAPH_NODE_TYPE_GRAPH, out, &what));
    *out = what.graph.graph;
    return CUDA_SUCCESS;
}
