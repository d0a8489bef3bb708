/* The runtime's streams, captures, graphs and host functions. */
#include "call.h"

cudaError_t CUDARTAPI cudaStreamCreate(cudaStream_t *out) {
    FORWARD(NEED_CONTEXT, false, cuStreamCreate(out, CU_STREAM_DEFAULT));
}

cudaError_t CUDARTAPI cudaStreamCreateWithFlags(cudaStream_t *out, unsigned int flags) {
    FORWARD(NEED_CONTEXT, false, cuStreamCreate(out, flags));
}

cudaError_t CUDARTAPI cudaStreamCreateWithPriority(cudaStream_t *out, unsigned int flags,
                                                   int priority) {
    FORWARD(NEED_CONTEXT, false, cuStreamCreateWithPriority(out, flags, priority));
}

cudaError_t CUDARTAPI cudaStreamDestroy(cudaStream_t stream) {
    FORWARD(NEED_CONTEXT, false, cuStreamDestroy(stream));
}

#define BOTH(name, parameters, call)                                                               \
    cudaError_t CUDARTAPI name parameters {                                                        \
        FORWARD(NEED_CONTEXT, false, call);                                                        \
    }                                                                                              \
    cudaError_t CUDARTAPI name##_ptsz parameters {                                                 \
        FORWARD(NEED_CONTEXT, true, call);                                                         \
    }

BOTH(cudaStreamSynchronize, (cudaStream_t stream), cuStreamSynchronize(stream))
BOTH(cudaStreamQuery, (cudaStream_t stream), cuStreamQuery(stream))
BOTH(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
     cuStreamWaitEvent(stream, event, flags))
BOTH(cudaStreamBeginCapture, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
     cuStreamBeginCapture(stream, (CUstreamCaptureMode)mode))
BOTH(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph),
     cuStreamEndCapture(stream, graph))
BOTH(cudaStreamIsCapturing, (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
     cuStreamIsCapturing(stream, (CUstreamCaptureStatus *)status))
BOTH(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream), cuGraphLaunch(exec, stream))
BOTH(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *data),
     cuLaunchHostFunc(stream, function, data))

cudaError_t CUDARTAPI cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
    FORWARD(NEED_DRIVER, false,
            cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)(void *)mode));
}

cudaError_t CUDARTAPI cudaGraphDestroy(cudaGraph_t graph) {
    FORWARD(NEED_CONTEXT, false, cuGraphDestroy(graph));
}

cudaError_t CUDARTAPI cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph,
                                           unsigned long long flags) {
    FORWARD(NEED_CONTEXT, false, cuGraphInstantiateWithFlags(out, graph, flags));
}

cudaError_t CUDARTAPI cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph,
                                                    unsigned long long flags) {
    return cudaGraphInstantiate(out, graph, flags);
}

cudaError_t CUDARTAPI cudaGraphExecDestroy(cudaGraphExec_t exec) {
    FORWARD(NEED_CONTEXT, false, cuGraphExecDestroy(exec));
}
