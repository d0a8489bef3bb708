/*
 * The driver's API as the library exports it: every ABI version under its own name, without the
 * macros by which cuda.h renames them for programs. All of it, and nothing else, is exported.
 */
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#pragma GCC visibility push(default)
#include <cuda.h>
/* Of cudaEGL.h, which needs EGL's own headers. */
CUresult CUDAAPI cuEventCreateFromEGLSync(CUevent *event, void *sync, unsigned int flags);
/* The simulator's own, for functions that nobody knows yet: a number made of its arguments, and a
 * copy. */
double CUDAAPI cuSimNewest(long a, long b, long c, long d, long e, long f, long g, double x,
                           double y);
CUresult CUDAAPI cuSimNewestCopy(CUdeviceptr to, CUdeviceptr from, size_t size);

/* What is newer than the headers. */
#if CUDA_VERSION < 13020
typedef struct CUstreamCigCaptureParams_st CUstreamCigCaptureParams;
#endif
#define PER_STREAM(name, parameters)                                                               \
    CUresult CUDAAPI name parameters;                                                              \
    CUresult CUDAAPI name##_ptsz parameters;
CUresult CUDAAPI cuMulticastBindMem_v2(CUmemGenericAllocationHandle object, CUdevice device,
                                       size_t at, CUmemGenericAllocationHandle memory,
                                       size_t offset, size_t size, unsigned long long flags);
CUresult CUDAAPI cuMulticastBindAddr_v2(CUmemGenericAllocationHandle object, CUdevice device,
                                        size_t at, CUdeviceptr address, size_t size,
                                        unsigned long long flags);
PER_STREAM(cuMemcpyWithAttributesAsync, (CUdeviceptr to, CUdeviceptr from, size_t size,
                                         CUmemcpyAttributes *attributes, CUstream stream))
PER_STREAM(cuMemcpy3DWithAttributesAsync,
           (CUDA_MEMCPY3D_BATCH_OP * box, unsigned long long flags, CUstream stream))
PER_STREAM(cuStreamBeginCaptureToCig, (CUstream stream, CUstreamCigCaptureParams *where))
PER_STREAM(cuStreamEndCaptureToCig, (CUstream stream))
PER_STREAM(cuStreamBeginRecaptureToGraph,
           (CUstream stream, CUstreamCaptureMode mode, CUgraph graph, void *each, void *data))
CUresult CUDAAPI cuLogicalEndpointBindMem(unsigned int id, CUdevice device, cuuint64_t at,
                                          CUmemGenericAllocationHandle memory, cuuint64_t offset,
                                          cuuint64_t size, unsigned long long flags);
CUresult CUDAAPI cuLogicalEndpointBindAddr(unsigned int id, CUdevice device, cuuint64_t at,
                                           CUdeviceptr address, cuuint64_t size,
                                           unsigned long long flags);
CUresult CUDAAPI cuGraphAddNode_v3(CUgraphNode *out, CUgraph graph, const CUgraphNode *after,
                                   const CUgraphEdgeData *edges, size_t count,
                                   CUgraphNodeParams *what);
CUresult CUDAAPI cuGraphNodeSetParams_v2(CUgraphNode node, CUgraphNodeParams *what);
#pragma GCC visibility pop

#include "../../common/system_headers.h"

/* Returns what a call answers unless it has succeeded. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        const CUresult tried_ = (call);                                                            \
        if (tried_)                                                                                \
            return tried_;                                                                         \
    } while (0)
/* Returns the code where the call is not to be carried out. */
#define REFUSE(wrong, code)                                                                        \
    do {                                                                                           \
        if (wrong)                                                                                 \
            return (code);                                                                         \
    } while (0)
/* A function of the API that is one call of another one; and both forms of one that has a stream,
 * of which `per_thread` says whether the default one is the thread's own. */
#define CALL(name, parameters, call)                                                               \
    CUresult CUDAAPI name parameters {                                                             \
        return call;                                                                               \
    }
#define BOTH(name, parameters, call)                                                               \
    CUresult CUDAAPI name parameters {                                                             \
        const bool per_thread = false;                                                             \
        return call;                                                                               \
    }                                                                                              \
    CUresult CUDAAPI name##_ptsz parameters {                                                      \
        const bool per_thread = true;                                                              \
        return call;                                                                               \
    }
