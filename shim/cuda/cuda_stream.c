/* cuda_stream.c - captures, ends of streams, waits, records, and launches on several streams. */
#include "calls/events.h"
#include "calls/launches.h"
#include "hooks.h"
#include "launch_words.h"

#define BEGIN_CAPTURE(name, parameters, arguments)                                                 \
    CUresult gps_on_##name parameters {                                                            \
        const uint64_t which = (uintptr_t)STREAM_OF(name, stream);                                 \
        struct gps_gate_pass pass;                                                                 \
        if (!gps_capture_begin(which, &pass))                                                      \
            return gps_real.name arguments;                                                        \
        const CUresult result = gps_real.name arguments;                                           \
        gps_capture_begun(which, &pass, (int)result);                                              \
        return result;                                                                             \
    }
#define BEGIN_CAPTURES(name, parameters, arguments)                                                \
    BEGIN_CAPTURE(name, parameters, arguments)                                                     \
    BEGIN_CAPTURE(name##_ptsz, parameters, arguments)
BEGIN_CAPTURES(cuStreamBeginCapture, (CUstream stream), (stream))
BEGIN_CAPTURES(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode), (stream, mode))
#define TO_GRAPH                                                                                   \
    (CUstream stream, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges,       \
     size_t count, CUstreamCaptureMode mode)
BEGIN_CAPTURES(cuStreamBeginCaptureToGraph, TO_GRAPH, (stream, graph, after, edges, count, mode))
BEGIN_CAPTURES(cuStreamBeginCaptureToCig, (CUstream stream, CUstreamCigCaptureParams *where),
               (stream, where))
#define AGAIN (CUstream stream, CUstreamCaptureMode mode, CUgraph graph, void *each, void *data)
BEGIN_CAPTURES(cuStreamBeginRecaptureToGraph, AGAIN, (stream, mode, graph, each, data))

#define END_CAPTURE(name, parameters, arguments)                                                   \
    CUresult gps_on_##name parameters {                                                            \
        const CUresult result = gps_real.name arguments;                                           \
        gps_capture_ended((uintptr_t)STREAM_OF(name, stream), (int)result);                        \
        return result;                                                                             \
    }
#define END_CAPTURES(name, parameters, arguments)                                                  \
    END_CAPTURE(name, parameters, arguments)                                                       \
    END_CAPTURE(name##_ptsz, parameters, arguments)
END_CAPTURES(cuStreamEndCapture, (CUstream stream, CUgraph *graph), (stream, graph))
END_CAPTURES(cuStreamEndCaptureToCig, (CUstream stream), (stream))

#define JOIN_CAPTURE(name)                                                                         \
    CUresult gps_on_##name(CUstream stream, CUevent event, unsigned int flags) {                   \
        struct gps_gate_pass pass;                                                                 \
        gps_event_waited((uintptr_t)event);                                                        \
        if (!gps_capture_join_begin((uintptr_t)STREAM_OF(name, stream), &pass))                    \
            return gps_real.name(stream, event, flags);                                            \
        const CUresult result = gps_real.name(stream, event, flags);                               \
        gps_gate_leave(&pass);                                                                     \
        return result;                                                                             \
    }
JOIN_CAPTURE(cuStreamWaitEvent)
JOIN_CAPTURE(cuStreamWaitEvent_ptsz)

#define AFTER(name, parameters, arguments, after)                                                  \
    CUresult gps_on_##name parameters {                                                            \
        const CUresult result = gps_real.name arguments;                                           \
        after((int)result);                                                                        \
        return result;                                                                             \
    }
#define DESTROY(name)                                                                              \
    CUresult gps_on_##name(CUstream stream) {                                                      \
        gps_stream_destroyed((uintptr_t)stream);                                                   \
        return gps_real.name(stream);                                                              \
    }
DESTROY(cuStreamDestroy)
DESTROY(cuStreamDestroy_v2)

#define WAIT(name, parameters, arguments) AFTER(name, parameters, arguments, gps_wait_ended)
#define ASK(name, parameters, arguments)  AFTER(name, parameters, arguments, gps_wait_polled)
WAIT(cuCtxSynchronize, (void), ())
WAIT(cuCtxSynchronize_v2, (CUcontext context), (context))
WAIT(cuStreamSynchronize, (CUstream stream), (stream))
WAIT(cuStreamSynchronize_ptsz, (CUstream stream), (stream))
ASK(cuStreamQuery, (CUstream stream), (stream))
ASK(cuStreamQuery_ptsz, (CUstream stream), (stream))

/* --- events --- */

#define EVENT(name, before, after)                                                                 \
    CUresult gps_on_##name(CUevent event) {                                                        \
        before((uintptr_t)event);                                                                  \
        const CUresult result = gps_real.name(event);                                              \
        after((int)result);                                                                        \
        return result;                                                                             \
    }
EVENT(cuEventSynchronize, gps_event_waited, gps_wait_ended)
EVENT(cuEventQuery, gps_event_used, gps_wait_polled)

/* An event is recorded by the call, or by a graph that it makes. */
#define RECORD(name, parameters, arguments)                                                        \
    CUresult gps_on_##name parameters {                                                            \
        gps_event_used((uintptr_t)event);                                                          \
        const CUresult result = gps_real.name arguments;                                           \
        if (result == CUDA_SUCCESS)                                                                \
            gps_event_recorded((uintptr_t)event);                                                  \
        return result;                                                                             \
    }
RECORD(cuEventRecord, (CUevent event, CUstream stream), (event, stream))
RECORD(cuEventRecord_ptsz, (CUevent event, CUstream stream), (event, stream))
#define FLAGGED (CUevent event, CUstream stream, unsigned int flags)
RECORD(cuEventRecordWithFlags, FLAGGED, (event, stream, flags))
RECORD(cuEventRecordWithFlags_ptsz, FLAGGED, (event, stream, flags))
RECORD(cuGraphAddEventRecordNode,
       (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t count, CUevent event),
       (node, graph, after, count, event))
RECORD(cuGraphEventRecordNodeSetEvent, (CUgraphNode node, CUevent event), (node, event))
RECORD(cuGraphExecEventRecordNodeSetEvent, (CUgraphExec graph, CUgraphNode node, CUevent event),
       (graph, node, event))

#define ELAPSED(name)                                                                              \
    CUresult gps_on_##name(float *out, CUevent start, CUevent end) {                               \
        gps_event_used((uintptr_t)start);                                                          \
        gps_event_used((uintptr_t)end);                                                            \
        return gps_real.name(out, start, end);                                                     \
    }
ELAPSED(cuEventElapsedTime)
ELAPSED(cuEventElapsedTime_v2)

static void launches_look(const CUDA_LAUNCH_PARAMS *launches, unsigned int count) {
    for (unsigned int i = 0; launches && i < count && gps_closed_looks; i++)
        gps_launch_look(&(struct gps_launch){launches[i].function, launches[i].kernelParams, NULL});
}

/* A kernel on each of several streams, which are explicit ones. No audit merges. */
CUresult gps_on_cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *launches,
                                                     unsigned int count, unsigned int flags) {
    struct gps_gate_pass pass;
    int code;
    launches_look(launches, count);
    if (!gps_launch_is_gated() || !launches || !count)
        return gps_real.cuLaunchCooperativeKernelMultiDevice(launches, count, flags);
    if (!gps_work_begin((uintptr_t)launches[0].hStream, false, &pass, &code))
        return (CUresult)code;
    for (unsigned int i = 1; i < count; i++)
        gps_streams_note(pass.slot, (uintptr_t)launches[i].hStream);
    code = (int)gps_real.cuLaunchCooperativeKernelMultiDevice(launches, count, flags);
    gps_work_end(&pass, code);
    return (CUresult)code;
}
