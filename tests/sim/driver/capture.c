/* Captures of streams: what they record, and how they get in the way of other calls; see stream.h.
 */
#include "graph.h"
#include "state.h"
#include "stream_state.h"

static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static bool in_the_way(const struct CUstream_st *stream) {
    if (stream->capture == CU_STREAM_CAPTURE_STATUS_NONE)
        return false;
    if (pthread_equal(stream->capturer, pthread_self()))
        return stream->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    return thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
           stream->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

CUresult capture_forbidden(void) {
    CUresult result = CUDA_SUCCESS;
    STREAMS_LOCKED();
    bool look = streams.captures && thread_mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    for (CUstream stream = look ? streams.first : NULL; stream; stream = stream->next) {
        if (in_the_way(stream)) {
            stream->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return result;
}

CUresult capture_own(CUstream stream) {
    STREAMS_LOCKED();
    bool captures = stream->capture != CU_STREAM_CAPTURE_STATUS_NONE;
    if (captures)
        stream->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return captures ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

/* Waiting for a whole context ends every capture in it, whatever the waiting thread's mode. */
CUresult capture_synchronize(CUcontext context) {
    CUresult result = CUDA_SUCCESS;
    STREAMS_LOCKED();
    for (CUstream stream = streams.captures ? streams.first : NULL; stream; stream = stream->next) {
        if (stream->context == context && stream->capture != CU_STREAM_CAPTURE_STATUS_NONE) {
            stream->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return result;
}

CUresult capture_implicit_locked(CUcontext context) {
    CUresult result = CUDA_SUCCESS;
    for (CUstream s = streams.captures ? streams.first : NULL; s; s = s->next) {
        if (s->context == context && stream_blocking(s) &&
            s->capture != CU_STREAM_CAPTURE_STATUS_NONE) {
            s->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
            result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    }
    return result;
}

CUresult capture_implicit(CUcontext context) {
    STREAMS_LOCKED();
    return capture_implicit_locked(context);
}

static CUresult begin(CUstream named, bool per_thread, CUstreamCaptureMode mode) {
    CUstream stream;
    TRY(stream_resolve(named, per_thread, &stream));
    CUresult result = CUDA_SUCCESS;
    REFUSE((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_ERROR_INVALID_VALUE);
    REFUSE(stream->legacy, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    STREAMS_LOCKED();
    if (stream->capture != CU_STREAM_CAPTURE_STATUS_NONE) {
        result = CUDA_ERROR_ILLEGAL_STATE;
    } else if (!(stream->graph = graph_create())) {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    } else {
        stream->capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
        stream->mode = mode;
        stream->capturer = pthread_self();
        stream->capture_id = state_serial();
        streams.captures++;
    }
    return result;
}

static CUresult finish(CUstream stream, CUgraph *graph) {
    CUstreamCaptureStatus status = stream->capture;
    *graph = NULL;
    REFUSE(status == CU_STREAM_CAPTURE_STATUS_NONE, CUDA_ERROR_ILLEGAL_STATE);
    if (stream->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
        !pthread_equal(stream->capturer, pthread_self()))
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    CUgraph captured = stream->graph;
    stream->capture = CU_STREAM_CAPTURE_STATUS_NONE;
    stream->graph = NULL;
    streams.captures--;
    if (status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
        graph_drop(captured);
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    *graph = captured;
    return CUDA_SUCCESS;
}

static CUresult end(CUstream named, bool per_thread, CUgraph *graph) {
    RESOLVED(stream, named, per_thread);
    REFUSE(!graph, CUDA_ERROR_INVALID_VALUE);
    STREAMS_LOCKED();
    return finish(stream, graph);
}

/* Of the legacy stream nothing is told while a stream that waits for it captures, whose capture
 * goes on (as CUDA documents it). */
static bool is_told(CUstream stream) {
    for (CUstream s = stream->legacy ? streams.first : NULL; s; s = s->next)
        if (s->context == stream->context && stream_blocking(s) &&
            s->capture != CU_STREAM_CAPTURE_STATUS_NONE)
            return false;
    return true;
}

static CUresult status_of(CUstream named, bool per_thread, CUstreamCaptureStatus *status) {
    CUstream stream;
    TRY(stream_resolve(named, per_thread, &stream));
    REFUSE(!status, CUDA_ERROR_INVALID_VALUE);
    CUresult result = CUDA_SUCCESS;
    STREAMS_LOCKED();
    if (is_told(stream))
        *status = stream->capture;
    else
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    return result;
}

/* The graph is the stream's until the capture ends; which step comes last is not told. */
static CUresult info_of(CUstream named, bool per_thread, CUstreamCaptureStatus *status,
                        cuuint64_t *id, CUgraph *graph) {
    RESOLVED(stream, named, per_thread);
    REFUSE(!status, CUDA_ERROR_INVALID_VALUE);
    if (stream->legacy)
        TRY(capture_implicit(stream->context));
    STREAMS_LOCKED();
    *status = stream->capture;
    if (id && stream->capture == CU_STREAM_CAPTURE_STATUS_ACTIVE)
        *id = stream->capture_id;
    if (graph && stream->capture == CU_STREAM_CAPTURE_STATUS_ACTIVE)
        *graph = stream->graph;
    return CUDA_SUCCESS;
}

#define CAPTURE_INFO(suffix, per_thread)                                                           \
    CUresult CUDAAPI cuStreamGetCaptureInfo##suffix(                                               \
        CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id) {                          \
        return info_of(stream, per_thread, status, id, NULL);                                      \
    }                                                                                              \
    CUresult CUDAAPI cuStreamGetCaptureInfo_v2##suffix(                                            \
        CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,            \
        const CUgraphNode **nodes, size_t *count) {                                                \
        return cuStreamGetCaptureInfo_v3##suffix(stream, status, id, graph, nodes, NULL, count);   \
    }                                                                                              \
    CUresult CUDAAPI cuStreamGetCaptureInfo_v3##suffix(                                            \
        CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,            \
        const CUgraphNode **nodes, const CUgraphEdgeData **edges, size_t *count) {                 \
        if (nodes)                                                                                 \
            *nodes = NULL;                                                                         \
        if (count)                                                                                 \
            *count = 0;                                                                            \
        return info_of(stream, per_thread, status, id, graph);                                     \
    }

CAPTURE_INFO(, false)
CAPTURE_INFO(_ptsz, true)

BOTH(cuStreamBeginCapture, (CUstream stream),
     begin(stream, per_thread, CU_STREAM_CAPTURE_MODE_GLOBAL))
BOTH(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode),
     begin(stream, per_thread, mode))
BOTH(cuStreamEndCapture, (CUstream stream, CUgraph *graph), end(stream, per_thread, graph))
BOTH(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *status),
     status_of(stream, per_thread, status))

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    TRY(state_check());
    REFUSE(!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED, CUDA_ERROR_INVALID_VALUE);
    CUstreamCaptureMode old = thread_mode;
    thread_mode = *mode;
    *mode = old;
    return CUDA_SUCCESS;
}

/* --- newer than the headers --- */

/* What is captured goes to another system, which runs it. */
static CUresult end_for_others(CUstream stream, bool per_thread) {
    CUgraph graph = NULL;
    CUresult result = end(stream, per_thread, &graph);
    graph_drop(graph);
    return result;
}

BOTH(cuStreamBeginCaptureToCig, (CUstream stream, CUstreamCigCaptureParams *where),
     begin(stream, per_thread, CU_STREAM_CAPTURE_MODE_GLOBAL))
BOTH(cuStreamEndCaptureToCig, (CUstream stream), end_for_others(stream, per_thread))

/* The new steps come behind those that the graph has. */
static CUresult begin_again(CUstream named, bool per_thread, CUstreamCaptureMode mode,
                            CUgraph graph) {
    TRY(graph ? begin(named, per_thread, mode) : CUDA_ERROR_INVALID_VALUE);
    RESOLVED(stream, named, per_thread);
    STREAMS_LOCKED();
    graph_drop(stream->graph);
    stream->graph = graph;
    return CUDA_SUCCESS;
}

BOTH(cuStreamBeginRecaptureToGraph,
     (CUstream stream, CUstreamCaptureMode mode, CUgraph graph, void *each, void *data),
     begin_again(stream, per_thread, mode, graph))
