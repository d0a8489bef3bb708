/* The driver, by dlopen, so that one binary runs on the simulator and on a real card. */
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#define GPU_CALLS(X)                                                                               \
    X(cuInit)                                                                                      \
    X(cuDeviceGet)                                                                                 \
    X(cuDeviceGetCount)                                                                            \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuDevicePrimaryCtxReset_v2)                                                                  \
    X(cuCtxCreate_v4)                                                                              \
    X(cuCtxDestroy_v2)                                                                             \
    X(cuCtxSetCurrent)                                                                             \
    X(cuCtxGetCurrent)                                                                             \
    X(cuCtxSynchronize)                                                                            \
    X(cuMemAlloc_v2)                                                                               \
    X(cuMemAllocPitch_v2)                                                                          \
    X(cuMemAllocManaged)                                                                           \
    X(cuMemHostAlloc)                                                                              \
    X(cuMemAllocAsync)                                                                             \
    X(cuMemFreeAsync)                                                                              \
    X(cuMemFree_v2)                                                                                \
    X(cuMemGetInfo_v2)                                                                             \
    X(cuMemGetAddressRange_v2)                                                                     \
    X(cuMemsetD8_v2)                                                                               \
    X(cuMemsetD8Async)                                                                             \
    X(cuMemcpyHtoD_v2)                                                                             \
    X(cuMemcpyDtoD_v2)                                                                             \
    X(cuMemcpyDtoH_v2)                                                                             \
    X(cuPointerGetAttribute)                                                                       \
    X(cuIpcGetMemHandle)                                                                           \
    X(cuIpcOpenMemHandle_v2)                                                                       \
    X(cuIpcCloseMemHandle)                                                                         \
    X(cuIpcGetEventHandle)                                                                         \
    X(cuIpcOpenEventHandle)                                                                        \
    X(cuEventCreate)                                                                               \
    X(cuEventRecord)                                                                               \
    X(cuEventQuery)                                                                                \
    X(cuEventSynchronize)                                                                          \
    X(cuEventDestroy_v2)                                                                           \
    X(cuStreamCreate)                                                                              \
    X(cuStreamSynchronize)                                                                         \
    X(cuStreamDestroy_v2)                                                                          \
    X(cuStreamBeginCapture_v2)                                                                     \
    X(cuStreamEndCapture)                                                                          \
    X(cuThreadExchangeStreamCaptureMode)                                                           \
    X(cuLaunchHostFunc)                                                                            \
    X(cuGraphDestroy)                                                                              \
    X(cuMemcpyHtoDAsync_v2)                                                                        \
    X(cuMemcpyDtoHAsync_v2)                                                                        \
    X(cuMemcpyDtoDAsync_v2)                                                                        \
    X(cuMemFreeHost)                                                                               \
    X(cuMemHostRegister_v2)                                                                        \
    X(cuMemHostUnregister)                                                                         \
    X(cuModuleLoadData)                                                                            \
    X(cuModuleUnload)                                                                              \
    X(cuModuleGetFunction)                                                                         \
    X(cuLaunchKernel)                                                                              \
    X(cuStreamCreateWithPriority)                                                                  \
    X(cuStreamQuery)                                                                               \
    X(cuStreamIsCapturing)                                                                         \
    X(cuGraphInstantiateWithFlags)                                                                 \
    X(cuGraphLaunch)                                                                               \
    X(cuGraphExecDestroy)                                                                          \
    X(cuMemGetAllocationGranularity)                                                               \
    X(cuMemCreate)                                                                                 \
    X(cuMemRelease)                                                                                \
    X(cuMemRetainAllocationHandle)                                                                 \
    X(cuMemAddressReserve)                                                                         \
    X(cuMemAddressFree)                                                                            \
    X(cuMemMap)                                                                                    \
    X(cuMemUnmap)                                                                                  \
    X(cuMemSetAccess)                                                                              \
    X(cuMemGetAccess)                                                                              \
    X(cuMemExportToShareableHandle)                                                                \
    X(cuMemImportFromShareableHandle)                                                              \
    X(cuDestroyExternalMemory)                                                                     \
    X(cuExternalMemoryGetMappedBuffer)                                                             \
    X(cuImportExternalMemory)                                                                      \
    X(cuMemPoolCreate)                                                                             \
    X(cuMemPoolDestroy)                                                                            \
    X(cuMemPoolExportToShareableHandle)                                                            \
    X(cuMemPoolImportFromShareableHandle)                                                          \
    X(cuMemPoolExportPointer)                                                                      \
    X(cuMemPoolImportPointer)                                                                      \
    X(cuMemAllocFromPoolAsync)                                                                     \
    X(cuDeviceGetDefaultMemPool)                                                                   \
    X(cuDeviceGetAttribute)                                                                        \
    X(cuMulticastCreate)                                                                           \
    X(cuMulticastAddDevice)                                                                        \
    X(cuMulticastBindMem)                                                                          \
    X(cuMulticastUnbind)                                                                           \
    X(cuGraphCreate)                                                                               \
    X(cuGraphAddMemcpyNode)                                                                        \
    X(cuGraphAddMemsetNode)                                                                        \
    X(cuGraphMemcpyNodeSetParams)                                                                  \
    X(cuGraphExecMemcpyNodeSetParams)                                                              \
    X(cuGraphExecMemsetNodeSetParams)                                                              \
    X(cuStreamWriteValue32_v2)                                                                     \
    X(cuPointerSetAttribute)                                                                       \
    X(cuMemGetHandleForAddressRange)                                                               \
    X(cuMemPrefetchAsync_v2)                                                                       \
    X(cuMemAdvise_v2)                                                                              \
    X(cuCheckpointProcessGetState)                                                                 \
    X(cuCheckpointProcessLock)                                                                     \
    X(cuCheckpointProcessCheckpoint)                                                               \
    X(cuCheckpointProcessRestore)                                                                  \
    X(cuCheckpointProcessUnlock)                                                                   \
    X(cuGetProcAddress_v2)

struct gpu {
#define X(name) __typeof__(name) *name;
    GPU_CALLS(X)
#undef X
};

extern struct gpu gpu;

/* Loads the driver; false, with a line on stderr, if it is not there. */
int gpu_load(void);
