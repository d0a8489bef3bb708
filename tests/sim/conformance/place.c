/* A place of several blocks; see place.h. */
#include "place.h"

CUresult place_start(void) {
    CUcontext context;
    CUresult result = gpu_load() ? gpu.cuInit(0) : CUDA_ERROR_NOT_INITIALIZED;
    if (!result)
        result = gpu.cuDevicePrimaryCtxRetain(&context, 0);
    return result ? result : gpu.cuCtxSetCurrent(context);
}

CUdeviceptr place_reserve(size_t size) {
    CUdeviceptr place = 0;
    return gpu.cuMemAddressReserve(&place, size, 0, 0, 0) ? 0 : place;
}

CUmemGenericAllocationHandle place_block(CUdeviceptr at, size_t size) {
    CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR};
    CUmemGenericAllocationHandle block = 0;
    wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    if (!gpu.cuMemCreate(&block, size, &wanted, 0))
        place_map(at, size, block);
    return block;
}

CUresult place_map(CUdeviceptr at, size_t size, CUmemGenericAllocationHandle block) {
    CUresult result = gpu.cuMemMap(at, size, 0, block, 0);
    return result ? result : place_allow(at, size, (CUmemAccess_flags)WRITE);
}

CUresult place_allow(CUdeviceptr at, size_t size, CUmemAccess_flags flags) {
    CUmemAccessDesc access = {.flags = flags};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return gpu.cuMemSetAccess(at, size, &access, 1);
}
