/* cuda_stream.c - captures, the end of streams, and waits. */
#include "calls/launches.h"
#include "hooks.h"

#define BEGIN_CAPTURE(name, parameters, arguments)                                                 \
    CUresult gps_on_##name parameters {                                                            \
        struct gps_gate_pass pass;                                                                 \
        if (!gps_capture_begin(&pass))                                                             \
            return gps_real.name arguments;                                                        \
        const CUresult result = gps_real.name arguments;                                           \
        gps_capture_begun(&pass, (int)result);                                                     \
        return result;                                                                             \
    }
BEGIN_CAPTURE(cuStreamBeginCapture, (CUstream stream), (stream))
BEGIN_CAPTURE(cuStreamBeginCapture_ptsz, (CUstream stream), (stream))
BEGIN_CAPTURE(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode), (stream, mode))
BEGIN_CAPTURE(cuStreamBeginCapture_v2_ptsz, (CUstream stream, CUstreamCaptureMode mode),
              (stream, mode))
#define TO_GRAPH                                                                                   \
    (CUstream stream, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges,       \
     size_t count, CUstreamCaptureMode mode)
BEGIN_CAPTURE(cuStreamBeginCaptureToGraph, TO_GRAPH, (stream, graph, after, edges, count, mode))
BEGIN_CAPTURE(cuStreamBeginCaptureToGraph_ptsz, TO_GRAPH,
              (stream, graph, after, edges, count, mode))

#define AFTER(name, parameters, arguments, after)                                                  \
    CUresult gps_on_##name parameters {                                                            \
        const CUresult result = gps_real.name arguments;                                           \
        after((int)result);                                                                        \
        return result;                                                                             \
    }
AFTER(cuStreamEndCapture, (CUstream stream, CUgraph *graph), (stream, graph), gps_capture_ended)
AFTER(cuStreamEndCapture_ptsz, (CUstream stream, CUgraph *graph), (stream, graph),
      gps_capture_ended)

#define DESTROY(name)                                                                              \
    CUresult gps_on_##name(CUstream stream) {                                                      \
        gps_stream_destroyed((uintptr_t)stream);                                                   \
        return gps_real.name(stream);                                                              \
    }
DESTROY(cuStreamDestroy)
DESTROY(cuStreamDestroy_v2)

#define WAIT(name, parameters, arguments) AFTER(name, parameters, arguments, gps_wait_ended)
#define ASK(name, parameters, arguments)  AFTER(name, parameters, arguments, gps_work_asked)
WAIT(cuCtxSynchronize, (void), ())
WAIT(cuCtxSynchronize_v2, (CUcontext context), (context))
WAIT(cuStreamSynchronize, (CUstream stream), (stream))
WAIT(cuStreamSynchronize_ptsz, (CUstream stream), (stream))
ASK(cuStreamQuery, (CUstream stream), (stream))
ASK(cuStreamQuery_ptsz, (CUstream stream), (stream))
WAIT(cuEventSynchronize, (CUevent event), (event))
ASK(cuEventQuery, (CUevent event), (event))
