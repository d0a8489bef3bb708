/*
 * The simulated libamdhip64: AMD's runtime over the simulated driver's contexts, memory, events and
 * streams, which it is built from. HIP_GENERATION is 6 or 7.
 */
#pragma once

#define __HIP_PLATFORM_AMD__
#pragma GCC visibility push(default)
#include <hip/hip_runtime_api.h>
/* Of later versions than the header. */
hipError_t hipExtGetLastError(void);
hipError_t hipGetDevicePropertiesR0600(void *properties, int device);
hipError_t hipGetProcAddress(const char *symbol, void **function, int version, uint64_t flags,
                             void *status);
hipError_t hipGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                  void *status);
#pragma GCC visibility pop

#include "../driver/abi.h"

/* The answer of an exported function: it becomes the thread's last error, as the generation has it.
 */
hipError_t hip_answer(hipError_t code);

/* GPUSHARE_SIM_HIP_FLAG is 0: what changed with 6.0 is as it was in 5.7. */
bool hip_is_5(void);

/* Starts the driver and makes the current device's context current in this thread. */
hipError_t hip_ready(void);
/* An exported function that is this alone; and one that needs a driver that has started. */
#define PLAIN(name, parameters, call)                                                              \
    hipError_t name parameters {                                                                   \
        return hip_answer(call);                                                                   \
    }
#define ANSWER(name, parameters, call)                                                             \
    hipError_t name parameters {                                                                   \
        const hipError_t ready = hip_ready();                                                      \
        return hip_answer(ready != hipSuccess ? ready : (call));                                   \
    }
int hip_device(void);
/* The context that hip_ready made current; and that of a device, after hip_ready. */
CUcontext hip_context(void);
hipError_t hip_code(CUresult result);

/* --- memory of other processes (attach.c) --- */

/* Whether an address lies in such memory: its base, and the device that it was opened for. */
bool hip_attached(CUdeviceptr address, CUdeviceptr *base, int *device);
/* One open of what lies at the address less. 1: nothing is open there. */
hipError_t hip_detach(CUdeviceptr address);
/* The device has been reset. */
void hip_forget_attached(int device);
