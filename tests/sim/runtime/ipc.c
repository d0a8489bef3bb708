/* The runtime's calls between processes: their driver twins, handle for handle. */
#include "call.h"

_Static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle), "the same handle");
_Static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle), "the same handle");

/* The real one writes there without a look (H200, CUDA 13.0, 2026-11-27). */
static void write_there(const void *handle) {
    if (!handle)
        raise(SIGSEGV);
}

cudaError_t CUDARTAPI cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer) {
    write_there(handle);
    FORWARD(NEED_CONTEXT, false,
            cuIpcGetMemHandle((CUipcMemHandle *)(void *)handle, (CUdeviceptr)(uintptr_t)pointer));
}

cudaError_t CUDARTAPI cudaIpcOpenMemHandle(void **out, cudaIpcMemHandle_t handle,
                                           unsigned int flags) {
    CUipcMemHandle same;
    memcpy(&same, &handle, sizeof same);
    FORWARD(NEED_CONTEXT, false, cuIpcOpenMemHandle((CUdeviceptr *)(void *)out, same, flags));
}

ONE(cudaIpcCloseMemHandle, (void *pointer), cuIpcCloseMemHandle((CUdeviceptr)(uintptr_t)pointer))

cudaError_t CUDARTAPI cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event) {
    write_there(handle);
    FORWARD(NEED_CONTEXT, false, cuIpcGetEventHandle((CUipcEventHandle *)(void *)handle, event));
}

cudaError_t CUDARTAPI cudaIpcOpenEventHandle(cudaEvent_t *out, cudaIpcEventHandle_t handle) {
    CUipcEventHandle same;
    memcpy(&same, &handle, sizeof same);
    FORWARD(NEED_CONTEXT, false, cuIpcOpenEventHandle(out, same));
}
