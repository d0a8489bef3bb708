/* Names and sentences of the codes. */
#include "abi.h"

static const struct {
    CUresult code;
    const char *name, *sentence;
} codes[] = {
#define CODE(name, sentence)                                                                       \
    { name, #name, sentence }
    CODE(CUDA_SUCCESS, "no error"),
    CODE(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    CODE(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    CODE(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    CODE(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    CODE(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    CODE(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    CODE(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    CODE(CUDA_ERROR_MAP_FAILED, "mapping of buffer object failed"),
    CODE(CUDA_ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS"),
    CODE(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    CODE(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
    CODE(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    CODE(CUDA_ERROR_NOT_READY, "device not ready"),
    CODE(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    CODE(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    CODE(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    CODE(CUDA_ERROR_ALREADY_MAPPED, "resource already mapped"),
    CODE(CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
    CODE(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
         "peer access is not supported between these two devices"),
    CODE(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
    CODE(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled"),
    CODE(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed"),
    CODE(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    CODE(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    CODE(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "system has unsupported display driver / cuda driver "
                                            "combination"),
    CODE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
    CODE(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
         "operation failed due to a previous error during capture"),
    CODE(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
         "attempt to terminate a thread-local capture sequence from another thread"),
    CODE(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
         "operation would make the legacy stream depend on a capturing blocking stream"),
    CODE(CUDA_ERROR_CAPTURED_EVENT, "operation not permitted on an event last recorded in a "
                                    "capturing stream"),
    CODE(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part or all of the requested memory range is "
                                                    "already mapped"),
    CODE(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
         "pointer does not correspond to a registered memory region"),
    CODE(CUDA_ERROR_UNKNOWN, "unknown error"),
#undef CODE
};

static CUresult find(CUresult code, const char **text, bool name) {
    REFUSE(!text, CUDA_ERROR_INVALID_VALUE);
    *text = NULL;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code)
            *text = name ? codes[i].name : codes[i].sentence;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CALL(cuGetErrorName, (CUresult code, const char **name), find(code, name, true))
CALL(cuGetErrorString, (CUresult code, const char **sentence), find(code, sentence, false))
