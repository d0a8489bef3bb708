/* Devices, the start, and the last error; see runtime.h. */
#include "runtime.h"

enum { DEVICES = 16 };

static struct {
    CUcontext contexts[DEVICES];
    atomic_uint resets; /* contexts before the last one are over */
} state;

static _Thread_local struct {
    int device;
    hipError_t last;
    CUcontext entered;
    unsigned resets;
} thread;

hipError_t hip_code(CUresult result) {
    return (hipError_t)result; /* the numbers that come up here are the same */
}

hipError_t hip_answer(hipError_t code) {
    if (HIP_GENERATION < 7 || code != hipSuccess)
        thread.last = code;
    return code;
}

bool hip_is_5(void) {
    const char *flag = getenv("GPUSHARE_SIM_HIP_FLAG");
    return flag && strcmp(flag, "0") == 0;
}

int hip_device(void) {
    return thread.device;
}

CUcontext hip_context(void) {
    return thread.entered;
}

static hipError_t enter(void) {
    CUcontext context;
    CUresult result = cuDevicePrimaryCtxRetain(&context, thread.device);
    if (result == CUDA_SUCCESS)
        result = cuCtxSetCurrent(context);
    if (result != CUDA_SUCCESS)
        return hip_code(result);
    state.contexts[thread.device] = context;
    thread.entered = context;
    thread.resets = atomic_load(&state.resets);
    return hipSuccess;
}

hipError_t hip_ready(void) {
    int count = 0;
    CUresult result = cuInit(0);
    if (result == CUDA_SUCCESS)
        result = cuDeviceGetCount(&count);
    if (result != CUDA_SUCCESS)
        return hip_code(result);
    if (!count)
        return hipErrorNoDevice;
    if (thread.entered && thread.resets == atomic_load(&state.resets) &&
        thread.entered == state.contexts[thread.device])
        return hipSuccess;
    return enter();
}

PLAIN(hipInit, (unsigned flags), flags ? hipErrorInvalidValue : hip_ready())

hipError_t hipRuntimeGetVersion(int *version) {
    if (!version)
        return hip_answer(hipErrorInvalidValue);
    *version = hip_is_5() ? 50700000 : HIP_GENERATION * 10000000 + 100000;
    return hip_answer(hipSuccess);
}

static hipError_t get_name(char *name, int device) {
    int count = 0;
    const hipError_t code = hip_ready();
    if (code != hipSuccess)
        return code;
    if (!name || cuDeviceGetCount(&count) != CUDA_SUCCESS)
        return hipErrorInvalidValue;
    if (device < 0 || device >= count)
        return hipErrorInvalidDevice;
    return hip_code(cuDeviceGetName(name, 256, device));
}

/* Fills in the name alone, which comes first in the structs of all versions. */
PLAIN(hipGetDevicePropertiesR0600, (void *properties, int device), get_name(properties, device))

/* The struct before 6.0, which this name has in all versions. */
hipError_t hipGetDeviceProperties(hipDeviceProp_t *properties, int device) {
    hipDeviceProp_t found = {.warpSize = 64, .maxThreadsPerBlock = 1024};
    hipError_t code = get_name(properties ? found.name : NULL, device);
    if (code == hipSuccess)
        code = hip_code(cuDeviceTotalMem_v2(&found.totalGlobalMem, device));
    if (code == hipSuccess)
        *properties = found;
    return hip_answer(code);
}

hipError_t hipDriverGetVersion(int *version) {
    return hipRuntimeGetVersion(version);
}

/* --- the last error: before 7 the last call's result, then the last one that is not 0 --- */

hipError_t hipGetLastError(void) {
    const hipError_t last = thread.last;
    thread.last = hipSuccess;
    return last;
}

hipError_t hipExtGetLastError(void) {
    return hipGetLastError();
}

hipError_t hipPeekAtLastError(void) {
    return thread.last;
}

const char *hipGetErrorName(hipError_t code) {
    const char *name = NULL;
    return cuGetErrorName((CUresult)code, &name) == CUDA_SUCCESS ? name : "hipErrorUnknown";
}

const char *hipGetErrorString(hipError_t code) {
    return hipGetErrorName(code);
}

/* --- devices --- */

static hipError_t get_count(int *count) {
    const hipError_t ready = hip_ready();
    return ready != hipSuccess ? ready
           : !count            ? hipErrorInvalidValue
                               : hip_code(cuDeviceGetCount(count));
}

PLAIN(hipGetDeviceCount, (int *count), get_count(count))

hipError_t hipGetDevice(int *device) {
    const hipError_t ready = hip_ready();
    if (ready == hipSuccess && device)
        *device = thread.device;
    return hip_answer(ready != hipSuccess ? ready : device ? hipSuccess : hipErrorInvalidValue);
}

static hipError_t set_device(int device) {
    int count = 0;
    hipError_t code = get_count(&count);
    if (code == hipSuccess && (device < 0 || device >= count))
        code = hipErrorInvalidDevice;
    if (code != hipSuccess || device == thread.device)
        return code;
    thread.device = device;
    return enter();
}

PLAIN(hipSetDevice, (int device), set_device(device))

/* A device has one, which becomes current with it. */
hipError_t hipCtxCreate(hipCtx_t *context, unsigned flags, hipDevice_t device) {
    hipError_t code = context ? set_device(device) : hipErrorInvalidValue;
    if (code == hipSuccess)
        code = hip_ready();
    if (code == hipSuccess)
        *context = (hipCtx_t)thread.entered;
    return hip_answer(code);
}

ANSWER(hipDeviceGetUuid, (hipUUID * uuid, hipDevice_t device),
       hip_code(cuDeviceGetUuid((CUuuid *)uuid, device)))
ANSWER(hipDeviceGetName, (char *name, int size, hipDevice_t device),
       hip_code(cuDeviceGetName(name, size, device)))
ANSWER(hipDeviceCanAccessPeer, (int *can, int device, int peer),
       hip_code(cuDeviceCanAccessPeer(can, device, peer)))

static hipError_t enable_peer(int peer) {
    CUcontext context;
    hipError_t code = hip_ready();
    if (code == hipSuccess)
        code = hip_code(cuDevicePrimaryCtxRetain(&context, peer));
    return code != hipSuccess ? code : hip_code(cuCtxEnablePeerAccess(context, 0));
}

PLAIN(hipDeviceEnablePeerAccess, (int peer, unsigned flags),
      flags ? hipErrorInvalidValue : enable_peer(peer))
ANSWER(hipDeviceSynchronize, (void), hip_code(cuCtxSynchronize()))

/* Every object of the device goes, imports, too. */
static hipError_t reset(void) {
    hipError_t code = hip_ready();
    if (code == hipSuccess)
        code = hip_code(cuDevicePrimaryCtxReset_v2(thread.device));
    if (code != hipSuccess)
        return code;
    state.contexts[thread.device] = NULL;
    atomic_fetch_add(&state.resets, 1);
    thread.entered = NULL;
    hip_forget_attached(thread.device);
    return hipSuccess;
}

PLAIN(hipDeviceReset, (void), reset())
