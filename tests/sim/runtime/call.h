/* The body of a runtime call that is one call of the driver's. */
#pragma once

#include "runtime.h"

#define FORWARD(need, per_thread, call)                                                            \
    do {                                                                                           \
        const struct driver *driver;                                                               \
        cudaError_t error_ = runtime_begin(need, per_thread, &driver);                             \
        return error_ ? runtime_end(error_) : runtime_result(driver->call);                        \
    } while (0)

/* Functions that are that alone; BOTH has one for the default stream of the thread's own, too. */
#define FUNCTION(name, per_thread, parameters, call)                                               \
    cudaError_t CUDARTAPI name parameters {                                                        \
        FORWARD(NEED_CONTEXT, per_thread, call);                                                   \
    }
#define ONE(name, parameters, call) FUNCTION(name, false, parameters, call)
#define BOTH(name, parameters, call)                                                               \
    FUNCTION(name, false, parameters, call)                                                        \
    FUNCTION(name##_ptsz, true, parameters, call)
/* What needs more than one call, and is told which of the two it is. */
#define TWINS(name, suffix, parameters, call)                                                      \
    cudaError_t CUDARTAPI name parameters {                                                        \
        const bool per_thread = false;                                                             \
        return call;                                                                               \
    }                                                                                              \
    cudaError_t CUDARTAPI name##suffix parameters {                                                \
        const bool per_thread = true;                                                              \
        return call;                                                                               \
    }
