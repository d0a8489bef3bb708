/* Host functions in streams. */
#include "stream.h"

struct host_call {
    CUhostFn function;
    void *data;
};

static CUresult run_host_call(void *argument) {
    const struct host_call *call = argument;
    call->function(call->data);
    return CUDA_SUCCESS;
}

static const struct work calling = {.run = run_host_call, .apart = true};

static CUresult launch(CUstream named, bool per_thread, CUhostFn function, void *data) {
    RESOLVED(stream, named, per_thread);
    REFUSE(!function, CUDA_ERROR_INVALID_VALUE);
    struct host_call *call = malloc(sizeof *call);
    REFUSE(!call, CUDA_ERROR_OUT_OF_MEMORY);
    *call = (struct host_call){function, data};
    return stream_submit(stream, &calling, call);
}

BOTH(cuLaunchHostFunc, (CUstream stream, CUhostFn function, void *data),
     launch(stream, per_thread, function, data))
