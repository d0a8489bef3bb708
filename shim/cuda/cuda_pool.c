/* cuda_pool.c - CUDA's memory pools that the program makes or imports, and pointers from them. */
#include "calls/pools.h"
#include "hooks.h"

#define POSIX CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

CUresult gps_on_cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props) {
    const CUresult result = gps_real.cuMemPoolCreate(out, props);
    if (result == CUDA_SUCCESS)
        gps_pools_made((struct gps_pool){
            .pool = (uintptr_t)*out,
            .device = props->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? props->location.id
                                                                          : GPS_VMM_NO_DEVICE,
            .types = (uint32_t)props->handleTypes});
    return result;
}

GPS_ENDS(cuMemPoolDestroy, CUmemoryPool, gps_pools_destroy)

CUresult gps_on_cuMemPoolExportToShareableHandle(void *out, CUmemoryPool pool,
                                                 CUmemAllocationHandleType type,
                                                 unsigned long long flags) {
    const CUresult result = gps_real.cuMemPoolExportToShareableHandle(out, pool, type, flags);
    if (result == CUDA_SUCCESS && type == POSIX)
        gps_pools_exported(*(const int *)out);
    else if (result != CUDA_SUCCESS)
        gps_pools_not_exported((uintptr_t)pool, (uint32_t)type, (int)result);
    return result;
}

CUresult gps_on_cuMemPoolImportFromShareableHandle(CUmemoryPool *out, void *shared,
                                                   CUmemAllocationHandleType type,
                                                   unsigned long long flags) {
    if (!out)
        gps_mappings_no_output();
    const CUresult result = gps_real.cuMemPoolImportFromShareableHandle(out, shared, type, flags);
    if (result == CUDA_SUCCESS)
        gps_pools_imported((struct gps_pool){.pool = (uintptr_t)*out,
                                             .device = GPS_VMM_NO_DEVICE,
                                             .types = (uint32_t)type,
                                             .imported = true},
                           type == POSIX ? (int)(intptr_t)shared : -1);
    else if (type == POSIX && out)
        gps_mappings_not_imported(shared, (int)result);
    return result;
}

CUresult gps_on_cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr pointer) {
    const CUresult result = gps_real.cuMemPoolExportPointer(out, pointer);
    if (result == CUDA_SUCCESS)
        gps_pools_pointer_exported(pointer, out->reserved);
    else
        gps_pools_pointer_not_exported(pointer, (int)result);
    return result;
}

CUresult gps_on_cuMemPoolImportPointer(CUdeviceptr *out, CUmemoryPool pool,
                                       CUmemPoolPtrExportData *shared) {
    const CUresult result = gps_real.cuMemPoolImportPointer(out, pool, shared);
    if (result == CUDA_SUCCESS)
        gps_pools_pointer_imported(
            (struct gps_pool_pointer){.pointer = *out, .pool = (uintptr_t)pool}, shared->reserved);
    return result;
}

#define ALLOCATE_FROM(name)                                                                        \
    CUresult gps_on_##name(CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream stream) {    \
        const CUresult result = gps_real.name(out, size, pool, stream);                            \
        if (result == CUDA_SUCCESS)                                                                \
            gps_pools_allocated(                                                                   \
                (struct gps_pool_pointer){.pointer = *out, .size = size, .pool = (uintptr_t)pool}, \
                (uintptr_t)STREAM_OF(name, stream));                                               \
        else                                                                                       \
            gps_pools_not_allocated((uintptr_t)pool, (int)result);                                 \
        return result;                                                                             \
    }
ALLOCATE_FROM(cuMemAllocFromPoolAsync)
ALLOCATE_FROM(cuMemAllocFromPoolAsync_ptsz)
