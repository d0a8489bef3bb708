/* The runtime's memory calls. */
#include "call.h"

#define ADDRESS(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

/* Unlike the driver's, an allocation of nothing succeeds and is nothing. */
cudaError_t CUDARTAPI cudaMalloc(void **out, size_t size) {
    const struct driver *driver;
    CUdeviceptr address = 0;
    cudaError_t error = runtime_begin(NEED_CONTEXT, false, &driver);
    if (!error && !out)
        error = cudaErrorInvalidValue;
    if (!error && size)
        error = (cudaError_t)driver->cuMemAlloc(&address, size);
    if (!error)
        *out = (void *)(uintptr_t)address;
    return runtime_end(error);
}

ONE(cudaFree, (void *pointer), cuMemFree(ADDRESS(pointer)))

static cudaError_t allocate_rows(void **out, size_t *pitch, size_t width, size_t height) {
    const struct driver *driver;
    CUdeviceptr address = 0;
    cudaError_t error = runtime_begin(NEED_CONTEXT, false, &driver);
    if (!error && (!out || !pitch))
        error = cudaErrorInvalidValue;
    if (error)
        return error;
    *pitch = 0;
    if (width && height)
        error = (cudaError_t)driver->cuMemAllocPitch(&address, pitch, width, height, 4);
    if (!error)
        *out = (void *)(uintptr_t)address;
    return error;
}

cudaError_t CUDARTAPI cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height) {
    return runtime_end(allocate_rows(out, pitch, width, height));
}

cudaError_t CUDARTAPI cudaMalloc3D(struct cudaPitchedPtr *out, struct cudaExtent extent) {
    struct cudaPitchedPtr rows = {.xsize = extent.width, .ysize = extent.height};
    size_t height;
    if (!out || __builtin_mul_overflow(extent.height, extent.depth, &height))
        return runtime_end(cudaErrorInvalidValue);
    cudaError_t error = allocate_rows(&rows.ptr, &rows.pitch, extent.width, height);
    if (!error)
        *out = rows;
    return runtime_end(error);
}

ONE(cudaMallocManaged, (void **out, size_t size, unsigned int flags),
    cuMemAllocManaged((CUdeviceptr *)out, size, flags))
BOTH(cudaMallocAsync, (void **out, size_t size, cudaStream_t stream),
     cuMemAllocAsync((CUdeviceptr *)out, size, stream))
BOTH(cudaFreeAsync, (void *pointer, cudaStream_t stream), cuMemFreeAsync(ADDRESS(pointer), stream))
ONE(cudaMallocHost, (void **out, size_t size), cuMemAllocHost(out, size))
ONE(cudaHostAlloc, (void **out, size_t size, unsigned int flags), cuMemHostAlloc(out, size, flags))
ONE(cudaFreeHost, (void *pointer), cuMemFreeHost(pointer))
ONE(cudaMemGetInfo, (size_t * available, size_t *total), cuMemGetInfo(available, total))

/* --- copies --- */

static cudaError_t copy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
                        bool per_thread) {
    const struct driver *driver;
    cudaError_t error = runtime_begin(NEED_CONTEXT, per_thread, &driver);
    if (error)
        return runtime_end(error);
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return runtime_result(driver->cuMemcpyHtoD(ADDRESS(to), from, size));
    case cudaMemcpyDeviceToHost:
        return runtime_result(driver->cuMemcpyDtoH(to, ADDRESS(from), size));
    case cudaMemcpyDeviceToDevice:
        return runtime_result(driver->cuMemcpyDtoD(ADDRESS(to), ADDRESS(from), size));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return runtime_result(driver->cuMemcpy(ADDRESS(to), ADDRESS(from), size));
    default:
        return runtime_end(cudaErrorInvalidMemcpyDirection);
    }
}

static cudaError_t copy_async(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
                              cudaStream_t stream, bool per_thread) {
    const struct driver *driver;
    cudaError_t error = runtime_begin(NEED_CONTEXT, per_thread, &driver);
    if (error)
        return runtime_end(error);
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return runtime_result(driver->cuMemcpyHtoDAsync(ADDRESS(to), from, size, stream));
    case cudaMemcpyDeviceToHost:
        return runtime_result(driver->cuMemcpyDtoHAsync(to, ADDRESS(from), size, stream));
    case cudaMemcpyDeviceToDevice:
        return runtime_result(driver->cuMemcpyDtoDAsync(ADDRESS(to), ADDRESS(from), size, stream));
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return runtime_result(driver->cuMemcpyAsync(ADDRESS(to), ADDRESS(from), size, stream));
    default:
        return runtime_end(cudaErrorInvalidMemcpyDirection);
    }
}

TWINS(cudaMemcpy, _ptds, (void *to, const void *from, size_t size, enum cudaMemcpyKind kind),
      copy(to, from, size, kind, per_thread))

TWINS(cudaMemcpyAsync, _ptsz,
      (void *to, const void *from, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream),
      copy_async(to, from, size, kind, stream, per_thread))

/* --- copies of rows --- */

/* What cuMemcpy2D is told: the kind says which sides are a card's. */
static bool plan_rows(CUDA_MEMCPY2D *plan, void *to, size_t to_pitch, const void *from,
                      size_t from_pitch, size_t width, size_t height, enum cudaMemcpyKind kind) {
    const bool to_card = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_card = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    *plan =
        (CUDA_MEMCPY2D){.srcMemoryType = from_card ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_UNIFIED,
                        .srcDevice = ADDRESS(from),
                        .srcPitch = from_pitch,
                        .dstMemoryType = to_card ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_UNIFIED,
                        .dstDevice = ADDRESS(to),
                        .dstPitch = to_pitch,
                        .WidthInBytes = width,
                        .Height = height};
    return (unsigned)kind <= cudaMemcpyDefault;
}

static cudaError_t copy_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                             size_t width, size_t height, enum cudaMemcpyKind kind,
                             bool per_thread) {
    CUDA_MEMCPY2D plan;
    if (!plan_rows(&plan, to, to_pitch, from, from_pitch, width, height, kind))
        return runtime_end(cudaErrorInvalidMemcpyDirection);
    FORWARD(NEED_CONTEXT, per_thread, cuMemcpy2DUnaligned(&plan));
}

static cudaError_t copy_rows_async(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                                   size_t width, size_t height, enum cudaMemcpyKind kind,
                                   cudaStream_t stream, bool per_thread) {
    CUDA_MEMCPY2D plan;
    if (!plan_rows(&plan, to, to_pitch, from, from_pitch, width, height, kind))
        return runtime_end(cudaErrorInvalidMemcpyDirection);
    FORWARD(NEED_CONTEXT, per_thread, cuMemcpy2DAsync(&plan, stream));
}

#define COPY_ROWS(sync, async, per_thread)                                                         \
    cudaError_t CUDARTAPI cudaMemcpy2D##sync(void *to, size_t to_pitch, const void *from,          \
                                             size_t from_pitch, size_t width, size_t height,       \
                                             enum cudaMemcpyKind kind) {                           \
        return copy_rows(to, to_pitch, from, from_pitch, width, height, kind, per_thread);         \
    }                                                                                              \
    cudaError_t CUDARTAPI cudaMemcpy2DAsync##async(                                                \
        void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,              \
        size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {                            \
        return copy_rows_async(to, to_pitch, from, from_pitch, width, height, kind, stream,        \
                               per_thread);                                                        \
    }

COPY_ROWS(, , false)
COPY_ROWS(_ptds, _ptsz, true)

ONE(cudaMemset, (void *to, int value, size_t size),
    cuMemsetD8(ADDRESS(to), (unsigned char)value, size))
FUNCTION(cudaMemset_ptds, true, (void *to, int value, size_t size),
         cuMemsetD8(ADDRESS(to), (unsigned char)value, size))
BOTH(cudaMemsetAsync, (void *to, int value, size_t size, cudaStream_t stream),
     cuMemsetD8Async(ADDRESS(to), (unsigned char)value, size, stream))

/* --- attributes --- */

static enum cudaMemoryType type_of(unsigned type, bool managed) {
    if (managed)
        return cudaMemoryTypeManaged;
    if (type == CU_MEMORYTYPE_DEVICE)
        return cudaMemoryTypeDevice;
    return type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
}

cudaError_t CUDARTAPI cudaPointerGetAttributes(struct cudaPointerAttributes *out,
                                               const void *pointer) {
    CUpointer_attribute asked[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_HOST_POINTER};
    unsigned type = 0;
    unsigned managed = 0; /* the driver writes so many bytes */
    int device = 0;
    CUdeviceptr on_device = 0;
    void *on_host = NULL;
    void *answers[] = {&type, &managed, &device, &on_device, &on_host};
    const struct driver *driver;
    cudaError_t error = runtime_begin(NEED_CONTEXT, false, &driver);
    if (!error && !out)
        error = cudaErrorInvalidValue;
    if (!error)
        error = (cudaError_t)driver->cuPointerGetAttributes(5, asked, answers, ADDRESS(pointer));
    if (error)
        return runtime_end(error);
    memset(out, 0, sizeof *out);
    out->type = type_of(type, managed);
    out->device = device;
    out->devicePointer = (void *)(uintptr_t)on_device;
    out->hostPointer =
        out->type == cudaMemoryTypeUnregistered ? (void *)(uintptr_t)pointer : on_host;
    return cudaSuccess;
}

/* --- memory of the program's --- */

ONE(cudaHostRegister, (void *pointer, size_t size, unsigned int flags),
    cuMemHostRegister(pointer, size, flags))
ONE(cudaHostUnregister, (void *pointer), cuMemHostUnregister(pointer))
