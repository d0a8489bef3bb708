/* The runtime's streams, captures, graphs and host functions. */
#include "call.h"

ONE(cudaStreamCreate, (cudaStream_t * out), cuStreamCreate(out, CU_STREAM_DEFAULT))
ONE(cudaStreamCreateWithFlags, (cudaStream_t * out, unsigned int flags), cuStreamCreate(out, flags))
ONE(cudaStreamCreateWithPriority, (cudaStream_t * out, unsigned int flags, int priority),
    cuStreamCreateWithPriority(out, flags, priority))
ONE(cudaStreamDestroy, (cudaStream_t stream), cuStreamDestroy(stream))
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

ONE(cudaGraphDestroy, (cudaGraph_t graph), cuGraphDestroy(graph))
ONE(cudaGraphInstantiate, (cudaGraphExec_t * out, cudaGraph_t graph, unsigned long long flags),
    cuGraphInstantiateWithFlags(out, graph, flags))

cudaError_t CUDARTAPI cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph,
                                                    unsigned long long flags) {
    return cudaGraphInstantiate(out, graph, flags);
}

ONE(cudaGraphExecDestroy, (cudaGraphExec_t exec), cuGraphExecDestroy(exec))
