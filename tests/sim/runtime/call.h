/* The body of a runtime call that is one call of the driver's. */
#ifndef RUNTIME_CALL_H
#define RUNTIME_CALL_H

#include "runtime.h"

#define FORWARD(need, per_thread, call)                                                            \
    do {                                                                                           \
        const struct driver *driver;                                                               \
        cudaError_t error_ = runtime_begin(need, per_thread, &driver);                             \
        return error_ ? runtime_end(error_) : runtime_result(driver->call);                        \
    } while (0)

#endif
