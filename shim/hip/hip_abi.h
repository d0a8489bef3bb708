/*
 * hip_abi.h - what the library uses of HIP's runtime, as its ABI is.
 *
 * AMD's headers differ between versions in what a name means, and few machines have them. What
 * stands here is the same in libamdhip64.so.5, .6 and .7 (hip_4.2 to hip_7.1 of its version
 * script). Codes and enumerations are ints.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int hipError_t;
typedef void *hipStream_t;
typedef void *hipEvent_t;
typedef void *hipDeviceptr_t;

typedef struct {
    char reserved[64];
} hipIpcMemHandle_t;
typedef struct {
    char reserved[64];
} hipIpcEventHandle_t;

typedef struct {
    void *ptr;
    size_t pitch, xsize, ysize;
} hipPitchedPtr;
typedef struct {
    size_t width, height, depth; /* width in bytes */
} hipExtent;

typedef struct {
    int type; /* before 6.0 another enumeration: HIP_MEMORY_ below */
    int device;
    void *devicePointer, *hostPointer;
    int isManaged;
    unsigned allocationFlags;
} hipPointerAttribute_t;

typedef struct {
    char bytes[16];
} hipUUID;

enum {
    HIP_EVENT_DISABLE_TIMING = 2,
    HIP_EVENT_INTERPROCESS = 4,
    HIP_MEMORY_HOST_5 = 0, /* before 6.0 */
    HIP_MEMORY_UNREGISTERED = 0,
    HIP_MEMORY_HOST = 1,
    HIP_ERROR_INVALID_CONFIGURATION = 9,   /* an event that was not made for other processes */
    HIP_ERROR_INVALID_DEVICE_POINTER = 17, /* memory that cannot be attached */
    HIP_ERROR_CONTEXT_IS_DESTROYED = 709,  /* an event that there is not */
};

hipError_t hipGetProcAddress(const char *symbol, void **function, int version, uint64_t flags,
                             void *status);
hipError_t hipGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                  void *status);

hipError_t hipMalloc(void **out, size_t size);
hipError_t hipExtMallocWithFlags(void **out, size_t size, unsigned flags);
hipError_t hipMallocPitch(void **out, size_t *pitch, size_t width, size_t height);
hipError_t hipMemAllocPitch(hipDeviceptr_t *out, size_t *pitch, size_t width, size_t height,
                            unsigned element);
hipError_t hipMalloc3D(hipPitchedPtr *out, hipExtent extent);
hipError_t hipFree(void *pointer);
hipError_t hipFreeAsync(void *pointer, hipStream_t stream);

hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *pointer);
hipError_t hipIpcOpenMemHandle(void **out, hipIpcMemHandle_t handle, unsigned flags);
hipError_t hipIpcCloseMemHandle(void *pointer);
hipError_t hipIpcGetEventHandle(hipIpcEventHandle_t *handle, hipEvent_t event);
hipError_t hipIpcOpenEventHandle(hipEvent_t *out, hipIpcEventHandle_t handle);
hipError_t hipEventCreate(hipEvent_t *out);
hipError_t hipEventCreateWithFlags(hipEvent_t *out, unsigned flags);
hipError_t hipEventDestroy(hipEvent_t event);

hipError_t hipDeviceReset(void);
hipError_t hipGetLastError(void);
hipError_t hipPeekAtLastError(void);
hipError_t hipExtGetLastError(void);

hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer);
hipError_t hipDeviceGetUuid(hipUUID *uuid, int device);
hipError_t hipDeviceSynchronize(void);
hipError_t hipGetDevice(int *device);
hipError_t hipGetDeviceCount(int *count);
hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *size, hipDeviceptr_t pointer);
hipError_t hipMemGetInfo(size_t *available, size_t *total);
hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *pointer);
hipError_t hipRuntimeGetVersion(int *version);
hipError_t hipSetDevice(int device);
hipError_t hipStreamIsCapturing(hipStream_t stream, int *status);
hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipThreadExchangeStreamCaptureMode(int *mode);
