/*
 * AMD's runtime, by dlopen, so that one binary runs on the simulator and on a card. AMD's headers
 * are not needed: what is the same in all versions stands in shim/hip/hip_abi.h.
 */
#pragma once

#include "../../../common/system_headers.h"

#include "../../../../shim/hip/hip_abi.h"

typedef int hipMemcpyKind;
hipError_t hipMemset(void *to, int value, size_t size);
hipError_t hipMemcpy(void *to, const void *from, size_t size, hipMemcpyKind kind);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);
hipError_t hipEventQuery(hipEvent_t event);
hipError_t hipStreamCreate(hipStream_t *out);
hipError_t hipStreamDestroy(hipStream_t stream);
hipError_t hipStreamBeginCapture(hipStream_t stream, int mode);
hipError_t hipStreamEndCapture(hipStream_t stream, void **graph);

#define HIP_CALLS(X)                                                                               \
    X(hipRuntimeGetVersion)                                                                        \
    X(hipGetDeviceCount)                                                                           \
    X(hipGetDevice)                                                                                \
    X(hipDeviceSynchronize)                                                                        \
    X(hipDeviceReset)                                                                              \
    X(hipMalloc)                                                                                   \
    X(hipFree)                                                                                     \
    X(hipMemset)                                                                                   \
    X(hipMemcpy)                                                                                   \
    X(hipMemGetInfo)                                                                               \
    X(hipMemGetAddressRange)                                                                       \
    X(hipPointerGetAttributes)                                                                     \
    X(hipIpcGetMemHandle)                                                                          \
    X(hipIpcOpenMemHandle)                                                                         \
    X(hipIpcCloseMemHandle)                                                                        \
    X(hipIpcGetEventHandle)                                                                        \
    X(hipIpcOpenEventHandle)                                                                       \
    X(hipEventCreateWithFlags)                                                                     \
    X(hipEventDestroy)                                                                             \
    X(hipEventRecord)                                                                              \
    X(hipEventQuery)                                                                               \
    X(hipGetLastError)                                                                             \
    X(hipPeekAtLastError)                                                                          \
    X(hipStreamCreate)                                                                             \
    X(hipStreamDestroy)                                                                            \
    X(hipStreamBeginCapture)                                                                       \
    X(hipStreamEndCapture)

struct hip {
#define X(name) __typeof__(name) *name;
    HIP_CALLS(X)
#undef X
    void *library;
    const char *soname;
    int major, minor; /* of the version that it says */
};
extern struct hip hip;

/* False: it is not there, or lacks a function, and stderr says so. It is not started. */
int hip_load(void);
/* Asks for the version in a process of its own, for a process that has started it cannot fork. */
int hip_ask_version(void);

/* The answer of versions to 6, or from 7 on. */
int hip_by(int six, int seven);
/* The one value of an open's flags. */
unsigned hip_flags(void);
/* hipMemoryType of device memory. */
int hip_device_kind(void);

/* The codes that this table names. */
enum {
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    CANNOT_BE_SHARED = 9,
    CANNOT_ATTACH = 17,
    OWN = 201,
    NO_OBJECT = 400,
    NOT_FOUND = 500,
    DESTROYED = 709,
    CAPTURED = 900,
};

enum { KIB = 1 << 10, MIB = 1 << 20, SIZE = 4 * MIB };

void alone_rows(void);
void pair_rows(void);
