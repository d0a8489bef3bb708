/*
 * What every runtime call begins and ends with, and the runtime's way to the driver: dlopen of
 * libcuda.so.1, dlsym of cuGetProcAddress_v2, and by that everything else, each call in its legacy
 * and its per-thread form. As the real one does, and no other.
 */
#pragma once

/* The driver's names as programs see them: cuda.h renames a field together with its use. */
#include <cuda.h>

/* The runtime's as it exports them, per-thread twins under their own names. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda_runtime_api.h>

#include "../../common/system_headers.h"

struct driver {
#define DRIVER(name, version) __typeof__(name) *name;
#include "driver.def"
#undef DRIVER
};

/* In the order in which they are used: loaded, initialised, with a current context. */
enum need { NEED_NOTHING, NEED_DRIVER, NEED_CONTEXT };

/* Sets *driver if it returns 0. */
cudaError_t runtime_begin(enum need need, bool per_thread, const struct driver **driver);
/* Remembers an error for cudaGetLastError, and returns it. */
cudaError_t runtime_end(cudaError_t error);
/* As runtime_end, of a driver's code: the numbers are the same. */
cudaError_t runtime_result(CUresult result);

/* The thread's device, and what makes its primary context current. */
int runtime_device(void);
cudaError_t runtime_set_device(int device);
/* The device's primary context is gone: the next call makes a new one. */
void runtime_forget_device(int device);
