/* Graphs and their launches; see graph.h. */
#include "graph.h"

#include "state.h"

#include <stdlib.h>

struct step {
    const struct work *work;
    void *argument;
};

struct CUgraph_st {
    atomic_uint holders;
    size_t count;
    struct step *steps;
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

CUresult graph_add(CUgraph graph, const struct work *work, void *argument) {
    struct step *grown = realloc(graph->steps, (graph->count + 1) * sizeof *grown);
    if (!grown)
        return CUDA_ERROR_OUT_OF_MEMORY;
    graph->steps = grown;
    grown[graph->count++] = (struct step){work, argument};
    return CUDA_SUCCESS;
}

void graph_drop(CUgraph graph) {
    if (!graph || --graph->holders)
        return;
    for (size_t i = 0; i < graph->count; i++)
        work_end(graph->steps[i].work, graph->steps[i].argument);
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

/* --- instantiating --- */

static CUresult instantiate(CUgraphExec *out, CUgraph graph) {
    CUresult result = state_check();
    if (result || !out || !graph)
        return result ? result : CUDA_ERROR_INVALID_VALUE;
    *out = malloc(sizeof **out);
    if (!*out)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*out)->graph = graph;
    graph->holders++;
    return CUDA_SUCCESS;
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

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph,
                                             unsigned long long flags) {
    return flags & ~0xfull ? CUDA_ERROR_INVALID_VALUE : instantiate(out, graph);
}

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
        result = graph->steps[i].work->run(graph->steps[i].argument);
    return result;
}

static CUresult hurt(const void *argument, uint64_t address, uint64_t size) {
    const struct CUgraph_st *graph = argument;
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < graph->count && !result; i++)
        if (graph->steps[i].work->hurt)
            result = graph->steps[i].work->hurt(graph->steps[i].argument, address, size);
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

CUresult CUDAAPI cuGraphLaunch(CUgraphExec exec, CUstream stream) {
    return launch(exec, stream, false);
}

CUresult CUDAAPI cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) {
    return launch(exec, stream, true);
}
