/*
 * graph.c - captures and graphs.
 */
#include "puppet.h"

/* capture STREAM; captured STREAM NAME: ends it, and the graph is ready; graph STREAM NAME: runs it
 */
COMMAND(capture, (int)CU(cuStreamBeginCapture)(stream_of(w[1]), (CUstreamCaptureMode)number(w[2])))
static int c_captured(char **w) {
    CUgraph graph;
    CUgraphExec made = NULL;
    int code = (int)CU(cuStreamEndCapture)(stream_of(w[1]), &graph);
    code = code ? code : (int)CU(cuGraphInstantiate)(&made, graph, 0);
    return pointer_reply(w[2], code, (uintptr_t)made);
}
/* node copy|fill TO OFFSET COUNT FROM|BYTE NAME: a graph of one node, ready; renode the same: other
 * parameters for that node of NAME; word STREAM NAME OFFSET VALUE: cuStreamWriteValue32 */
CUgraphNode last_node;

CUDA_MEMCPY3D device_copy(u64 to, u64 from, size_t count) {
    return (CUDA_MEMCPY3D){.dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = to,
                           .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = from,
                           .WidthInBytes = count,
                           .Height = 1,
                           .Depth = 1};
}
static CUDA_MEMSET_NODE_PARAMS device_fill(u64 to, unsigned byte, size_t count) {
    return (CUDA_MEMSET_NODE_PARAMS){
        .dst = to, .value = byte, .elementSize = 1, .width = count, .height = 1};
}
static CUDA_MEMCPY3D node_copy(char **w) {
    return device_copy(value(w[2]) + number(w[3]), w[1][0] == 'c' ? value(w[5]) : 0, number(w[4]));
}
static CUDA_MEMSET_NODE_PARAMS node_fill(char **w) {
    return device_fill(value(w[2]) + number(w[3]), w[1][0] == 'f' ? (unsigned)number(w[5]) : 0,
                       number(w[4]));
}
static int c_node(char **w) {
    CUgraph graph;
    CUgraphExec made = NULL;
    CUcontext context;
    const CUDA_MEMCPY3D copy = node_copy(w);
    const CUDA_MEMSET_NODE_PARAMS fill = node_fill(w);
    int code = (int)CU(cuGraphCreate)(&graph, 0);
    code = code ? code : (int)CU(cuCtxGetCurrent)(&context);
    if (!code)
        code = w[1][0] == 'c'
                   ? (int)CU(cuGraphAddMemcpyNode)(&last_node, graph, NULL, 0, &copy, context)
                   : (int)CU(cuGraphAddMemsetNode)(&last_node, graph, NULL, 0, &fill, context);
    code = code ? code : (int)CU(cuGraphInstantiate)(&made, graph, 0);
    return pointer_reply(w[6], code, (uintptr_t)made);
}
static int c_renode(char **w) {
    const CUgraphExec graph = (CUgraphExec)(uintptr_t)value(w[6]);
    CUcontext context;
    const CUDA_MEMCPY3D copy = node_copy(w);
    const CUDA_MEMSET_NODE_PARAMS fill = node_fill(w);
    int code = (int)CU(cuCtxGetCurrent)(&context);
    if (!code)
        code = w[1][0] == 'c'
                   ? (int)CU(cuGraphExecMemcpyNodeSetParams)(graph, last_node, &copy, context)
                   : (int)CU(cuGraphExecMemsetNodeSetParams)(graph, last_node, &fill, context);
    return code;
}

COMMAND(graph, (int)CU(cuGraphLaunch)((CUgraphExec)(uintptr_t)value(w[2]), stream_of(w[1])))

#ifndef VENDOR_HIP
/* graphown NAME: on the thread's own default stream */
typedef CUresult launch_graph(CUgraphExec graph, CUstream stream);
COMMAND(graphown,
        (int)((launch_graph *)abi("cuGraphLaunch_ptsz"))((CUgraphExec)(uintptr_t)value(w[1]), NULL))

/* made NAME: a graph without nodes. more GRAPH kernel|copy|fill|child ...: a node more, of KERNEL
 * ARGUMENT..., TO FROM COUNT, TO BYTE COUNT, or GRAPH; each of TO and FROM is NAME[+OFFSET]. ready
 * GRAPH NAME [FUNCTION]: it can be launched; update NAME GRAPH; rekernel NAME KERNEL ARGUMENT...:
 * other ones for the last node; disable NAME: the last node. */
static int c_made(char **w) {
    CUgraph graph = NULL;
    const int code = (int)CU(cuGraphCreate)(&graph, 0);
    return pointer_reply(w[1], code, (uintptr_t)graph);
}

static int plan_kernel(char **w, CUDA_KERNEL_NODE_PARAMS *kernel) {
    enum { MOST = 8, GRID = 32, THREADS = 128 };
    static u64 values[MOST];
    static void *places[MOST];
    for (size_t i = 0; i < MOST && w[1 + i]; i++) {
        values[i] = argument(w[1 + i]);
        places[i] = &values[i];
    }
    *kernel = (CUDA_KERNEL_NODE_PARAMS){.gridDimX = GRID,
                                        .gridDimY = 1,
                                        .gridDimZ = 1,
                                        .blockDimX = THREADS,
                                        .blockDimY = 1,
                                        .blockDimZ = 1,
                                        .kernelParams = places};
    return (int)CU(cuModuleGetFunction)(&kernel->func, kernels, w[0]);
}

static int c_more(char **w) {
    const CUgraph graph = (CUgraph)(uintptr_t)value(w[1]);
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUcontext context;
    int code = (int)CU(cuCtxGetCurrent)(&context);
    if (strcmp(w[2], "child") == 0)
        return (int)CU(cuGraphAddChildGraphNode)(&last_node, graph, NULL, 0,
                                                 (CUgraph)(uintptr_t)value(w[3]));
    if (strcmp(w[2], "kernel") == 0) {
        code = code ? code : plan_kernel(w + 3, &kernel);
        return code ? code : (int)CU(cuGraphAddKernelNode)(&last_node, graph, NULL, 0, &kernel);
    }
    const u64 to = argument(w[3]), from = argument(w[4]), count = number(w[5]);
    const CUDA_MEMCPY3D copy = device_copy(to, from, count);
    const CUDA_MEMSET_NODE_PARAMS fill = device_fill(to, (unsigned)from, count);
    if (code)
        return code;
    return w[2][0] == 'c'
               ? (int)CU(cuGraphAddMemcpyNode)(&last_node, graph, NULL, 0, &copy, context)
               : (int)CU(cuGraphAddMemsetNode)(&last_node, graph, NULL, 0, &fill, context);
}

static int c_ready(char **w) {
    const CUgraph graph = (CUgraph)(uintptr_t)value(w[1]);
    typedef CUresult with_params(CUgraphExec *, CUgraph, CUDA_GRAPH_INSTANTIATE_PARAMS *);
    CUDA_GRAPH_INSTANTIATE_PARAMS how = {.flags = 0};
    CUgraphExec made = NULL;
    const int code = w[3] ? (int)((with_params *)abi(w[3]))(&made, graph, &how)
                          : (int)CU(cuGraphInstantiate)(&made, graph, 0);
    return pointer_reply(w[2], code, (uintptr_t)made);
}

static int c_update(char **w) {
    CUgraphExecUpdateResultInfo how;
    return (int)CU(cuGraphExecUpdate)((CUgraphExec)(uintptr_t)value(w[1]),
                                      (CUgraph)(uintptr_t)value(w[2]), &how);
}

static int c_rekernel(char **w) {
    CUDA_KERNEL_NODE_PARAMS kernel;
    const int code = plan_kernel(w + 2, &kernel);
    return code ? code
                : (int)CU(cuGraphExecKernelNodeSetParams)((CUgraphExec)(uintptr_t)value(w[1]),
                                                          last_node, &kernel);
}
COMMAND(disable, (int)CU(cuGraphNodeSetEnabled)((CUgraphExec)(uintptr_t)value(w[1]), last_node, 0))
COMMAND(unready, (int)CU(cuGraphExecDestroy)((CUgraphExec)(uintptr_t)value(w[1])))
#endif

struct relaxed_free {
    u64 pointer;
    int code;
};

static void *free_relaxed(void *arg) {
    struct relaxed_free *call = arg;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    call->code = (int)CU(cuThreadExchangeStreamCaptureMode)(&mode);
    call->code = call->code ? call->code : do_free(call->pointer);
    return NULL;
}

/* free-relaxed NAME: frees it in a thread of relaxed mode, while this one captures in global mode
 * -> the code of the capture's end */
static int c_free_relaxed(char **w) {
    struct relaxed_free call = {.pointer = value(w[1])};
    CUstream captured;
    CUgraph graph;
    pthread_t thread;
    int code = (int)CU(cuStreamCreate)(&captured, CU_STREAM_NON_BLOCKING);
    code = code ? code : (int)CU(cuStreamBeginCapture)(captured, CU_STREAM_CAPTURE_MODE_GLOBAL);
    if (code || pthread_create(&thread, NULL, free_relaxed, &call) != 0)
        return code ? code : BAD;
    pthread_join(thread, NULL);
    say(" %d", (int)CU(cuStreamEndCapture)(captured, &graph));
    return call.code;
}

const struct command graph_commands[] = {
    {"capture", "STREAM [MODE]", c_capture},
    {"captured", "STREAM NAME", c_captured},
    {"graph", "STREAM NAME", c_graph},
    {"node", "copy|fill TO OFFSET COUNT FROM|BYTE NAME", c_node},
    {"renode", "copy|fill TO OFFSET COUNT FROM|BYTE NAME", c_renode},
    {"free-relaxed", "NAME", c_free_relaxed},
#ifndef VENDOR_HIP
    {"graphown", "NAME", c_graphown},
    {"made", "NAME", c_made},
    {"more", "GRAPH KIND ARGUMENT...", c_more},
    {"ready", "GRAPH NAME [FUNCTION]", c_ready},
    {"update", "NAME GRAPH", c_update},
    {"rekernel", "NAME KERNEL ARGUMENT...", c_rekernel},
    {"disable", "NAME", c_disable},
    {"unready", "NAME", c_unready},
#endif
    {0},
};
