/*
 * newer.c - functions that cuda.h lacks, and libraries that look for theirs on their own.
 */
#include "puppet.h"

#ifndef VENDOR_HIP
/* newer FUNCTION TO OFFSET FROM OFFSET COUNT [export]: copies, or binds TO, by a function that
 * cuda.h lacks: as the resolver finds it, or, by the name of an export, as dlsym does */
static void *newer_found(char **w) {
    CUdriverProcAddressQueryResult status;
    void *found = NULL;
    if (w[7])
        return dlsym(dlopen("libcuda.so.1", RTLD_NOW), w[1]);
    return CU(cuGetProcAddress)(w[1], &found, 99000, 0, &status) ? NULL : found;
}

#define NEWER(type) ((type *)newer_found(w))

/* plug PATH: loads a library that looks into its own dependencies first */
static void *plugin;
static int c_plug(char **w) {
    plugin = dlopen(w[1], RTLD_LAZY | RTLD_DEEPBIND);
    return plugin ? 0 : 1;
}

/* plugged FUNCTION NAME: what that library's function answers */
static int c_plugged(char **w) {
    int (*function)(u64) = (int (*)(u64))dlsym(plugin, w[1]);
    return function ? function(value(w[2])) : BAD;
}

static int run_graph(CUgraph graph) {
    CUgraphExec made;
    int code = (int)CU(cuGraphInstantiate)(&made, graph, 0);
    code = code ? code : (int)CU(cuGraphLaunch)(made, NULL);
    return code ? code : (int)CU(cuStreamSynchronize)(NULL);
}

static int newer_node(char **w, u64 to, u64 from, size_t size, bool again) {
    typedef CUresult add(CUgraphNode *, CUgraph, const CUgraphNode *, const CUgraphEdgeData *,
                         size_t, CUgraphNodeParams *);
    typedef CUresult set(CUgraphNode, CUgraphNodeParams *);
    CUgraph graph;
    CUcontext context;
    CUgraphNodeParams what = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
    what.memcpy.copyParams = device_copy(again ? from : to, from, size);
    int code = (int)CU(cuGraphCreate)(&graph, 0);
    code = code ? code : (int)CU(cuCtxGetCurrent)(&context);
    if (code)
        return code;
    if (!again) {
        code = (int)NEWER(add)(&last_node, graph, NULL, NULL, 0, &what);
        return code ? code : run_graph(graph);
    }
    code =
        (int)CU(cuGraphAddMemcpyNode)(&last_node, graph, NULL, 0, &what.memcpy.copyParams, context);
    what.memcpy.copyParams.dstDevice = to;
    code = code ? code : (int)NEWER(set)(last_node, &what);
    return code ? code : run_graph(graph);
}

static int newer_capture(char **w, u64 to, u64 from, size_t size, bool again) {
    typedef CUresult begin(CUstream, void *);
    typedef CUresult begin_again(CUstream, CUstreamCaptureMode, CUgraph, void *, void *);
    typedef CUresult end(CUstream);
    char *ends[] = {w[0], "cuStreamEndCaptureToCig", NULL, NULL, NULL, NULL, NULL, w[7]};
    CUgraph graph;
    CUstream stream;
    int code = (int)CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING);
    code = code ? code : (int)CU(cuGraphCreate)(&graph, 0);
    if (!code)
        code = again ? (int)NEWER(begin_again)(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, graph, NULL,
                                               NULL)
                     : (int)NEWER(begin)(stream, NULL);
    code = code ? code : (int)CU(cuMemcpyDtoDAsync)(to, from, size, stream);
    if (!code)
        code = again ? (int)CU(cuStreamEndCapture)(stream, &graph)
                     : (int)((end *)newer_found(ends))(stream);
    code = code || !again ? code : run_graph(graph);
    return code ? code : (int)CU(cuStreamDestroy)(stream);
}

static int newer_bind(char **w, u64 to, size_t size, bool by_handle) {
    typedef CUresult mem(u64, CUdevice, size_t, u64, size_t, size_t, unsigned long long);
    typedef CUresult address(u64, CUdevice, size_t, u64, size_t, unsigned long long);
    const CUmulticastObjectProp prop = {.numDevices = 1, .size = size};
    CUmemGenericAllocationHandle object;
    const int code = (int)CU(cuMulticastCreate)(&object, &prop);
    return code        ? code
           : by_handle ? (int)NEWER(mem)(object, 0, 0, to, 0, size, 0)
                       : (int)NEWER(address)(object, 0, 0, to, size, 0);
}

static bool begins(const char *name, const char *with) {
    return strncmp(name, with, strlen(with)) == 0;
}

static int c_newer(char **w) {
    typedef CUresult copy(u64, u64, size_t, CUmemcpyAttributes *, CUstream);
    typedef CUresult copy_box(CUDA_MEMCPY3D_BATCH_OP *, unsigned long long, CUstream);
    const u64 to = value(w[2]) + number(w[3]), from = value(w[4]) + number(w[5]);
    const size_t size = number(w[6]);
    CUDA_MEMCPY3D_BATCH_OP box = {.extent = {size, 1, 1},
                                  .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    box.dst.type = box.src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    box.dst.op.ptr.ptr = to;
    box.src.op.ptr.ptr = from;
    if (!newer_found(w))
        return BAD;
    if (begins(w[1], "cuGraph"))
        return newer_node(w, to, from, size, begins(w[1], "cuGraphNode"));
    if (begins(w[1], "cuStream"))
        return newer_capture(w, to, from, size, begins(w[1], "cuStreamBeginRe"));
    if (strstr(w[1], "Bind"))
        return newer_bind(w, to, size, strstr(w[1], "Mem"));
    const int code = begins(w[1], "cuMemcpy3D") ? (int)NEWER(copy_box)(&box, 0, NULL)
                                                : (int)NEWER(copy)(to, from, size, NULL, NULL);
    return code ? code : (int)CU(cuStreamSynchronize)(NULL);
}

/* lookups NAME FROM COUNT: asks for NAME0, NAME1 ... */
static int c_lookups(char **w) {
    for (u64 i = number(w[2]); i < number(w[2]) + number(w[3]); i++) {
        char name[64];
        char *asked[] = {w[0], name, NULL, NULL, NULL, NULL, NULL, NULL};
        snprintf(name, sizeof(name), "%s%llu", w[1], (unsigned long long)i);
        if (!newer_found(asked))
            return BAD;
    }
    return 0;
}

const struct command newer_commands[] = {
    {"newer", "FUNCTION TO OFFSET FROM OFFSET COUNT [export]", c_newer},
    {"lookups", "NAME FROM COUNT", c_lookups},
    {"plug", "PATH", c_plug},
    {"plugged", "FUNCTION NAME", c_plugged},
    {0},
};
#else
const struct command newer_commands[] = {{0}};
#endif
