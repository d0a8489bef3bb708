/* Streams, captures and host functions; see runtime.h. */
#include "runtime.h"

#define PASS(name, parameters, call) ANSWER(name, parameters, hip_code(call))

PASS(hipStreamCreate, (hipStream_t * out), cuStreamCreate((CUstream *)out, 0))
PASS(hipStreamDestroy, (hipStream_t stream), cuStreamDestroy_v2((CUstream)stream))
PASS(hipStreamSynchronize, (hipStream_t stream), cuStreamSynchronize((CUstream)stream))
PASS(hipStreamQuery, (hipStream_t stream), cuStreamQuery((CUstream)stream))
PASS(hipStreamWaitEvent, (hipStream_t stream, hipEvent_t event, unsigned flags),
     cuStreamWaitEvent((CUstream)stream, (CUevent)event, flags))
PASS(hipLaunchHostFunc, (hipStream_t stream, hipHostFn_t function, void *data),
     cuLaunchHostFunc((CUstream)stream, function, data))

PASS(hipStreamBeginCapture, (hipStream_t stream, hipStreamCaptureMode mode),
     cuStreamBeginCapture_v2((CUstream)stream, (CUstreamCaptureMode)mode))
PASS(hipStreamEndCapture, (hipStream_t stream, hipGraph_t *graph),
     cuStreamEndCapture((CUstream)stream, (CUgraph *)graph))
PASS(hipStreamIsCapturing, (hipStream_t stream, hipStreamCaptureStatus *status),
     cuStreamIsCapturing((CUstream)stream, (CUstreamCaptureStatus *)status))
PASS(hipThreadExchangeStreamCaptureMode, (hipStreamCaptureMode * mode),
     cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)mode))
PASS(hipGraphDestroy, (hipGraph_t graph), cuGraphDestroy((CUgraph)graph))
