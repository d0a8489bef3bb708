/*
 * Objects of multicast: a handle, and what is bound to it is checked. No memory lies behind one, so
 * it cannot be mapped; and what the simulator has of cuMemMapArrayAsync, which needs arrays: a
 * refusal.
 */
#include "device.h"
#include "mapping.h"
#include "physical.h"
#include "state.h"

#include "../protocol.h"

static CUresult check_object(const CUmulticastObjectProp *wanted) {
    if (!wanted || !wanted->numDevices || !wanted->size || wanted->size % SIM_BLOCK ||
        wanted->flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (wanted->handleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMulticastGetGranularity(size_t *granularity, const CUmulticastObjectProp *wanted,
                                           CUmulticastGranularity_flags option) {
    TRY(state_check());
    REFUSE(!granularity || option > CU_MULTICAST_GRANULARITY_RECOMMENDED, CUDA_ERROR_INVALID_VALUE);
    TRY(check_object(wanted));
    *granularity = SIM_BLOCK;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMulticastCreate(CUmemGenericAllocationHandle *out,
                                   const CUmulticastObjectProp *wanted) {
    TRY(state_asked());
    TRY(out ? check_object(wanted) : CUDA_ERROR_INVALID_VALUE);
    STATE_LOCKED();
    return physical_multicast(wanted->size, out);
}

static const struct physical *object_of(CUmemGenericAllocationHandle handle) {
    const struct physical *object = physical_find(handle);
    return object && object->multicast ? object : NULL;
}

CUresult CUDAAPI cuMulticastAddDevice(CUmemGenericAllocationHandle object, CUdevice device) {
    TRY(state_asked());
    STATE_LOCKED();
    return !object_of(object)     ? CUDA_ERROR_INVALID_VALUE
           : device_valid(device) ? CUDA_SUCCESS
                                  : CUDA_ERROR_INVALID_DEVICE;
}

/* Under the state lock. */
static CUresult check_binding(const struct physical *object, size_t at,
                              const struct physical *memory, size_t offset, size_t size,
                              unsigned long long flags) {
    const bool whole =
        size && at % SIM_BLOCK == 0 && offset % SIM_BLOCK == 0 && size % SIM_BLOCK == 0 && !flags;
    return whole && object && memory && !memory->multicast && at <= object->size &&
                   size <= object->size - at && offset <= memory->size &&
                   size <= memory->size - offset
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMulticastBindMem(CUmemGenericAllocationHandle object, size_t at,
                                    CUmemGenericAllocationHandle memory, size_t offset, size_t size,
                                    unsigned long long flags) {
    TRY(state_asked());
    state_lock();
    CUresult result =
        check_binding(object_of(object), at, physical_find(memory), offset, size, flags);
    state_unlock();
    return result;
}

CUresult CUDAAPI cuMulticastBindAddr(CUmemGenericAllocationHandle object, size_t at,
                                     CUdeviceptr address, size_t size, unsigned long long flags) {
    TRY(state_asked());
    STATE_LOCKED();
    return check_binding(object_of(object), at, mapping_memory(address), 0, size, flags);
}

CUresult CUDAAPI cuMulticastBindMem_v2(CUmemGenericAllocationHandle object, CUdevice device,
                                       size_t at, CUmemGenericAllocationHandle memory,
                                       size_t offset, size_t size, unsigned long long flags) {
    CUresult result = cuMulticastAddDevice(object, device);
    return result ? result : cuMulticastBindMem(object, at, memory, offset, size, flags);
}

CUresult CUDAAPI cuMulticastBindAddr_v2(CUmemGenericAllocationHandle object, CUdevice device,
                                        size_t at, CUdeviceptr address, size_t size,
                                        unsigned long long flags) {
    CUresult result = cuMulticastAddDevice(object, device);
    return result ? result : cuMulticastBindAddr(object, at, address, size, flags);
}

/* Endpoints are objects of multicast here, whose id is the handle. */
CALL(cuLogicalEndpointBindMem,
     (unsigned int id, CUdevice device, cuuint64_t at, CUmemGenericAllocationHandle memory,
      cuuint64_t offset, cuuint64_t size, unsigned long long flags),
     cuMulticastBindMem_v2(id, device, at, memory, offset, size, flags))
CALL(cuLogicalEndpointBindAddr,
     (unsigned int id, CUdevice device, cuuint64_t at, CUdeviceptr address, cuuint64_t size,
      unsigned long long flags),
     cuMulticastBindAddr_v2(id, device, at, address, size, flags))

CUresult CUDAAPI cuMulticastUnbind(CUmemGenericAllocationHandle object, CUdevice device, size_t at,
                                   size_t size) {
    CUresult result = cuMulticastAddDevice(object, device);
    return result                                                 ? result
           : size && at % SIM_BLOCK == 0 && size % SIM_BLOCK == 0 ? CUDA_SUCCESS
                                                                  : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMemMapArrayAsync(CUarrayMapInfo *maps, unsigned int count, CUstream stream) {
    CUresult result = state_asked();
    return result ? result : maps && count ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

CALL(cuMemMapArrayAsync_ptsz, (CUarrayMapInfo * maps, unsigned int count, CUstream stream),
     cuMemMapArrayAsync(maps, count, stream))
