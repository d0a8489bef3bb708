/* The runtime's look-ups: of driver functions, and of errors' names. */
#include "call.h"

typedef CUresult find_function(const char *, void **, int, cuuint64_t,
                               CUdriverProcAddressQueryResult *);

static cudaError_t find(const char *name, void **out, unsigned version, cuuint64_t flags,
                        bool per_thread, enum cudaDriverEntryPointQueryResult *status) {
    CUdriverProcAddressQueryResult answer = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    const struct driver *driver;
    cudaError_t error = runtime_begin(NEED_DRIVER, false, &driver);
    if (error)
        return error;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *symbol = library ? dlsym(library, "cuGetProcAddress_v2") : NULL;
    if (!symbol)
        return cudaErrorInsufficientDriver;
    if (per_thread && !flags)
        flags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    CUresult result = ((find_function *)(uintptr_t)symbol)(name, out, (int)version, flags, &answer);
    dlclose(library);
    if (!result && status)
        *status = (enum cudaDriverEntryPointQueryResult)answer;
    return (cudaError_t)result;
}

TWINS(cudaGetDriverEntryPoint, _ptsz,
      (const char *name, void **out, unsigned long long flags,
       enum cudaDriverEntryPointQueryResult *status),
      runtime_end(find(name, out, CUDART_VERSION, flags, per_thread, status)))

TWINS(cudaGetDriverEntryPointByVersion, _ptsz,
      (const char *name, void **out, unsigned int version, unsigned long long flags,
       enum cudaDriverEntryPointQueryResult *status),
      runtime_end(find(name, out, version, flags, per_thread, status)))

/* Names of the runtime's own where a test may print them; the sentences are the driver's. */
const char *CUDARTAPI cudaGetErrorName(cudaError_t error) {
    static const struct {
        cudaError_t error;
        const char *name;
    } names[] = {
#define NAME(error) {error, #error}
        NAME(cudaSuccess),
        NAME(cudaErrorInvalidValue),
        NAME(cudaErrorMemoryAllocation),
        NAME(cudaErrorInitializationError),
        NAME(cudaErrorCudartUnloading),
        NAME(cudaErrorInvalidMemcpyDirection),
        NAME(cudaErrorInsufficientDriver),
        NAME(cudaErrorNoDevice),
        NAME(cudaErrorInvalidDevice),
        NAME(cudaErrorDeviceUninitialized),
        NAME(cudaErrorMapBufferObjectFailed),
        NAME(cudaErrorInvalidResourceHandle),
        NAME(cudaErrorIllegalState),
        NAME(cudaErrorSymbolNotFound),
        NAME(cudaErrorNotReady),
        NAME(cudaErrorIllegalAddress),
        NAME(cudaErrorNoKernelImageForDevice),
        NAME(cudaErrorPeerAccessUnsupported),
        NAME(cudaErrorPeerAccessAlreadyEnabled),
        NAME(cudaErrorPeerAccessNotEnabled),
        NAME(cudaErrorContextIsDestroyed),
        NAME(cudaErrorNotPermitted),
        NAME(cudaErrorNotSupported),
        NAME(cudaErrorStreamCaptureUnsupported),
        NAME(cudaErrorStreamCaptureInvalidated),
        NAME(cudaErrorStreamCaptureImplicit),
        NAME(cudaErrorUnknown),
#undef NAME
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].error == error)
            return names[i].name;
    return "unrecognized error code";
}

const char *CUDARTAPI cudaGetErrorString(cudaError_t error) {
    const struct driver *driver;
    const char *sentence = NULL;
    if (!runtime_begin(NEED_NOTHING, false, &driver))
        driver->cuGetErrorString((CUresult)error, &sentence);
    return sentence ? sentence : "unrecognized error code";
}
