/* driver_stream.c - see driver_stream.h. */
#include "driver_stream.h"

#include "driver_calls.h"

/* The driver refuses to tell of the legacy stream while another one's capture would be disturbed:
 * then a graph is being made, and the stream takes no part in it. */
bool gps_stream_op_capturing(uint64_t stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return gps_calls.cuStreamIsCapturing &&
           gps_calls.cuStreamIsCapturing((CUstream)stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

int gps_stream_op_wait(uint64_t stream) {
    return gps_calls.cuStreamSynchronize ? (int)gps_calls.cuStreamSynchronize((CUstream)stream)
                                         : CUDA_ERROR_NOT_INITIALIZED;
}
