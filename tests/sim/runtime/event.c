/* The runtime's events. */
#include "call.h"

cudaError_t CUDARTAPI cudaEventCreate(cudaEvent_t *out) {
    FORWARD(NEED_CONTEXT, false, cuEventCreate(out, CU_EVENT_DEFAULT));
}

cudaError_t CUDARTAPI cudaEventCreateWithFlags(cudaEvent_t *out, unsigned int flags) {
    FORWARD(NEED_CONTEXT, false, cuEventCreate(out, flags));
}

cudaError_t CUDARTAPI cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    FORWARD(NEED_CONTEXT, false, cuEventRecord(event, stream));
}

cudaError_t CUDARTAPI cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream) {
    FORWARD(NEED_CONTEXT, true, cuEventRecord(event, stream));
}

cudaError_t CUDARTAPI cudaEventQuery(cudaEvent_t event) {
    FORWARD(NEED_CONTEXT, false, cuEventQuery(event));
}

cudaError_t CUDARTAPI cudaEventSynchronize(cudaEvent_t event) {
    FORWARD(NEED_CONTEXT, false, cuEventSynchronize(event));
}

cudaError_t CUDARTAPI cudaEventDestroy(cudaEvent_t event) {
    FORWARD(NEED_CONTEXT, false, cuEventDestroy(event));
}

cudaError_t CUDARTAPI cudaEventElapsedTime(float *milliseconds, cudaEvent_t start,
                                           cudaEvent_t end) {
    FORWARD(NEED_CONTEXT, false, cuEventElapsedTime(milliseconds, start, end));
}
