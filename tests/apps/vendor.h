/*
 * vendor.h - one source for programs of both vendors' runtimes.
 *
 * The programs are written for CUDA's. With VENDOR_HIP each name that they use stands for HIP's of
 * the same meaning, from AMD's header. EITHER(cuda, hip) is what differs.
 */
#pragma once

#ifndef VENDOR_HIP
#include <cuda.h>
#include <cuda_runtime_api.h>
#define POINTER_ATTRIBUTES struct cudaPointerAttributes
#define POINTER_KIND       type
#define EITHER(cuda, hip)  (cuda)
#else
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>
#define EITHER(cuda, hip) (hip)
#define POINTER_KIND      memoryType

#define cudaError_t          hipError_t
#define cudaEvent_t          hipEvent_t
#define cudaStream_t         hipStream_t
#define cudaIpcEventHandle_t hipIpcEventHandle_t
#define cudaIpcMemHandle_t   hipIpcMemHandle_t
#define POINTER_ATTRIBUTES   hipPointerAttribute_t

#define cudaDeviceCanAccessPeer    hipDeviceCanAccessPeer
#define cudaDeviceEnablePeerAccess hipDeviceEnablePeerAccess
#define cudaDeviceReset            hipDeviceReset
#define cudaDeviceSynchronize      hipDeviceSynchronize
#define cudaEventCreateWithFlags   hipEventCreateWithFlags
#define cudaEventDestroy           hipEventDestroy
#define cudaEventQuery             hipEventQuery
#define cudaEventRecord            hipEventRecord
#define cudaEventSynchronize       hipEventSynchronize
#define cudaFree                   hipFree
#define cudaFreeAsync              hipFreeAsync
#define cudaFreeHost               hipHostFree
#define cudaGetDeviceCount         hipGetDeviceCount
#define cudaGetErrorString         hipGetErrorString
#define cudaGetLastError           hipGetLastError
#define cudaIpcCloseMemHandle      hipIpcCloseMemHandle
#define cudaIpcGetEventHandle      hipIpcGetEventHandle
#define cudaIpcGetMemHandle        hipIpcGetMemHandle
#define cudaIpcOpenEventHandle     hipIpcOpenEventHandle
#define cudaIpcOpenMemHandle       hipIpcOpenMemHandle
#define cudaLaunchHostFunc         hipLaunchHostFunc
#define cudaMalloc                 hipMalloc
#define cudaMallocAsync            hipMallocAsync
#define cudaMallocHost(out, size)  hipHostMalloc(out, size, 0)
#define cudaMallocManaged          hipMallocManaged
#define cudaMallocPitch            hipMallocPitch
#define cudaMemGetInfo             hipMemGetInfo
#define cudaMemcpy                 hipMemcpy
#define cudaPointerGetAttributes   hipPointerGetAttributes
#define cudaMemset                 hipMemset
#define cudaSetDevice              hipSetDevice

#define cudaMemcpyDeviceToHost         2
#define cudaMemcpyHostToDevice         1
#define cudaMemAttachGlobal            1
#define cudaEventDisableTiming         hipEventDisableTiming
#define cudaEventInterprocess          hipEventInterprocess
/* 0 in the header of version 5; the runtime takes its own value. */
#define cudaIpcMemLazyEnablePeerAccess 1

#define cudaSuccess                  hipSuccess
#define cudaErrorInvalidValue        hipErrorInvalidValue
#define cudaErrorInitializationError hipErrorNotInitialized
#define cudaErrorDeviceUninitialized hipErrorInvalidContext
#endif
