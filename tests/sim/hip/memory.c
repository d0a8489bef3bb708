/* Allocations, frees, copies and what memory is; see runtime.h. */
#include "runtime.h"

#define READY_OR_ANSWER()                                                                          \
    do {                                                                                           \
        const hipError_t ready = hip_ready();                                                      \
        if (ready != hipSuccess)                                                                   \
            return hip_answer(ready);                                                              \
    } while (0)

static CUdeviceptr at(const void *pointer) {
    return (CUdeviceptr)(uintptr_t)pointer;
}

/* --- allocations --- */

static hipError_t allocate(void **out, size_t size) {
    CUdeviceptr got;
    if (!out)
        return hipErrorInvalidValue;
    if (!size) {
        *out = NULL;
        return hipSuccess;
    }
    const hipError_t code = hip_code(cuMemAlloc_v2(&got, size));
    if (code == hipSuccess)
        *out = (void *)(uintptr_t)got;
    return code;
}

ANSWER(hipMalloc, (void **out, size_t size), allocate(out, size))
ANSWER(hipExtMallocWithFlags, (void **out, size_t size, unsigned flags),
       flags > 2 ? hipErrorInvalidValue : allocate(out, size))

static hipError_t allocate_rows(void **out, size_t *pitch, size_t width, size_t height) {
    CUdeviceptr got;
    if (!out || !pitch || !width || !height)
        return hipErrorInvalidValue;
    const hipError_t code = hip_code(cuMemAllocPitch_v2(&got, pitch, width, height, 4));
    if (code == hipSuccess)
        *out = (void *)(uintptr_t)got;
    return code;
}

ANSWER(hipMallocPitch, (void **out, size_t *pitch, size_t width, size_t height),
       allocate_rows(out, pitch, width, height))

hipError_t hipMemAllocPitch(hipDeviceptr_t *out, size_t *pitch, size_t width, size_t height,
                            unsigned element) {
    return hipMallocPitch(out, pitch, width, height);
}

hipError_t hipMalloc3D(hipPitchedPtr *out, hipExtent extent) {
    READY_OR_ANSWER();
    if (!out)
        return hip_answer(hipErrorInvalidValue);
    const hipError_t code =
        allocate_rows(&out->ptr, &out->pitch, extent.width, extent.height * extent.depth);
    if (code == hipSuccess) {
        out->xsize = extent.width;
        out->ysize = extent.height;
    }
    return hip_answer(code);
}

hipError_t hipMallocManaged(void **out, size_t size, unsigned flags) {
    CUdeviceptr got;
    READY_OR_ANSWER();
    const hipError_t code =
        out ? hip_code(cuMemAllocManaged(&got, size, flags)) : hipErrorInvalidValue;
    if (code == hipSuccess)
        *out = (void *)(uintptr_t)got;
    return hip_answer(code);
}

ANSWER(hipHostMalloc, (void **out, size_t size, unsigned flags),
       hip_code(cuMemHostAlloc(out, size, flags & 7)))
ANSWER(hipHostFree, (void *pointer), pointer ? hip_code(cuMemFreeHost(pointer)) : hipSuccess)

hipError_t hipMallocAsync(void **out, size_t size, hipStream_t stream) {
    CUdeviceptr got;
    READY_OR_ANSWER();
    const hipError_t code =
        out ? hip_code(cuMemAllocAsync(&got, size, (CUstream)stream)) : hipErrorInvalidValue;
    if (code == hipSuccess)
        *out = (void *)(uintptr_t)got;
    return hip_answer(code);
}

/* --- frees: any address of the memory will do --- */

static hipError_t release(CUdeviceptr address) {
    CUdeviceptr base;
    size_t size;
    int device;
    if (!address)
        return hipSuccess;
    if (hip_attached(address, &base, &device))
        return hip_detach(address);
    if (cuMemGetAddressRange_v2(&base, &size, address) != CUDA_SUCCESS)
        base = address;
    return hip_code(cuMemFree_v2(base));
}

ANSWER(hipFree, (void *pointer), release(at(pointer)))
ANSWER(hipFreeAsync, (void *pointer, hipStream_t stream),
       pointer ? hip_code(cuMemFreeAsync(at(pointer), (CUstream)stream)) : hipErrorInvalidValue)

/* --- copies --- */

static hipError_t copy(void *to, const void *from, size_t size, hipMemcpyKind kind) {
    switch (kind) {
    case hipMemcpyHostToDevice:
        return hip_code(cuMemcpyHtoD_v2(at(to), from, size));
    case hipMemcpyDeviceToHost:
        return hip_code(cuMemcpyDtoH_v2(to, at(from), size));
    case hipMemcpyDeviceToDevice:
        return hip_code(cuMemcpyDtoD_v2(at(to), at(from), size));
    case hipMemcpyHostToHost:
    case hipMemcpyDefault:
        return hip_code(cuMemcpy(at(to), at(from), size));
    }
    return hipErrorInvalidValue;
}

ANSWER(hipMemcpy, (void *to, const void *from, size_t size, hipMemcpyKind kind),
       size ? copy(to, from, size, kind) : hipSuccess)
ANSWER(hipMemcpyAsync,
       (void *to, const void *from, size_t size, hipMemcpyKind kind, hipStream_t stream),
       hip_code(cuMemcpyAsync(at(to), at(from), size, (CUstream)stream)))
ANSWER(hipMemset, (void *to, int value, size_t size),
       hip_code(cuMemsetD8_v2(at(to), (unsigned char)value, size)))
ANSWER(hipMemsetAsync, (void *to, int value, size_t size, hipStream_t stream),
       hip_code(cuMemsetD8Async(at(to), (unsigned char)value, size, (CUstream)stream)))

/* --- what memory is --- */

ANSWER(hipMemGetInfo, (size_t * available, size_t *total),
       hip_code(cuMemGetInfo_v2(available, total)))

hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *size, hipDeviceptr_t pointer) {
    CUdeviceptr start;
    READY_OR_ANSWER();
    const hipError_t code = hip_code(cuMemGetAddressRange_v2(&start, size, at(pointer)));
    if (code == hipSuccess && base)
        *base = (void *)(uintptr_t)start;
    return hip_answer(code);
}

/* The enumeration's numbers are those of 6.0, or of 5.7. */
static hipError_t describe(hipPointerAttribute_t *out, CUdeviceptr address) {
    enum { UNREGISTERED = 0, HOST = 1, DEVICE = 2, MANAGED = 3 };
    CUmemorytype type;
    CUdeviceptr base;
    int device = 0;
    unsigned managed = 0;
    if (cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS) {
        if (hip_is_5())
            return hipErrorInvalidValue;
        *out = (hipPointerAttribute_t){.memoryType = (enum hipMemoryType)UNREGISTERED};
        return hipSuccess;
    }
    (void)cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
    if (!hip_attached(address, &base, &device))
        (void)cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
    int kind = managed ? MANAGED : type == CU_MEMORYTYPE_HOST ? HOST : DEVICE;
    if (hip_is_5()) /* its host is 0, its device 1 */
        kind = managed ? MANAGED : kind - 1;
    *out = (hipPointerAttribute_t){.memoryType = (enum hipMemoryType)kind,
                                   .device = device,
                                   .devicePointer = (void *)(uintptr_t)address,
                                   .isManaged = managed != 0};
    return hipSuccess;
}

ANSWER(hipPointerGetAttributes, (hipPointerAttribute_t * out, const void *pointer),
       !out || !pointer ? hipErrorInvalidValue : describe(out, at(pointer)))
