/* The runtime's events. */
#include "call.h"

ONE(cudaEventCreate, (cudaEvent_t * out), cuEventCreate(out, CU_EVENT_DEFAULT))
ONE(cudaEventCreateWithFlags, (cudaEvent_t * out, unsigned int flags), cuEventCreate(out, flags))
BOTH(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), cuEventRecord(event, stream))
ONE(cudaEventQuery, (cudaEvent_t event), cuEventQuery(event))
ONE(cudaEventSynchronize, (cudaEvent_t event), cuEventSynchronize(event))
ONE(cudaEventDestroy, (cudaEvent_t event), cuEventDestroy(event))
ONE(cudaEventElapsedTime, (float *milliseconds, cudaEvent_t start, cudaEvent_t end),
    cuEventElapsedTime(milliseconds, start, end))
