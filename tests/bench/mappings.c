/* Memory of cuMemCreate: two calls that make it and give it back, three that map it, and two that
 * import and release it; two that allocate from a pool and free. */
#include "measure.h"

#include <cuda.h>

static struct {
    __typeof__(cuMemCreate) *create;
    __typeof__(cuMemRelease) *release;
    __typeof__(cuMemAddressReserve) *reserve;
    __typeof__(cuMemMap) *map;
    __typeof__(cuMemUnmap) *unmap;
    __typeof__(cuMemSetAccess) *allow;
    __typeof__(cuMemExportToShareableHandle) *export;
    __typeof__(cuMemImportFromShareableHandle) *import;
    __typeof__(cuMemPoolCreate) *pool_create;
    __typeof__(cuMemAllocFromPoolAsync) *allocate;
    __typeof__(cuMemFreeAsync) *free;
    CUmemGenericAllocationHandle block;
    CUdeviceptr place;
    CUmemoryPool pool;
    int descriptor;
} gpu;

static const CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE};

static CUmemGenericAllocationHandle create_with(CUmemAllocationHandleType types) {
    const CUmemAllocationProp wanted = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = types, .location = here};
    CUmemGenericAllocationHandle block;
    check((cudaError_t)gpu.create(&block, 2 * MIB, &wanted, 0), "cuMemCreate");
    return block;
}

static CUmemGenericAllocationHandle create(void) {
    return create_with(CU_MEM_HANDLE_TYPE_NONE);
}

bool mappings_available(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return false;
    *(void **)(void *)&gpu.create = dlsym(library, "cuMemCreate");
    *(void **)(void *)&gpu.release = dlsym(library, "cuMemRelease");
    *(void **)(void *)&gpu.reserve = dlsym(library, "cuMemAddressReserve");
    *(void **)(void *)&gpu.map = dlsym(library, "cuMemMap");
    *(void **)(void *)&gpu.unmap = dlsym(library, "cuMemUnmap");
    *(void **)(void *)&gpu.allow = dlsym(library, "cuMemSetAccess");
    if (!gpu.create || !gpu.release || !gpu.reserve || !gpu.map || !gpu.unmap || !gpu.allow)
        return false;
    gpu.block = create();
    for (int i = 0; i < 256; i++) /* a program has hundreds of them */
        create();
    return gpu.reserve(&gpu.place, 2 * MIB, 0, 0, 0) == CUDA_SUCCESS;
}

bool mappings_shared_available(void) {
    const CUmemAllocationHandleType type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    const CUmemPoolProps wanted = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here};
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!mappings_available())
        return false;
    *(void **)(void *)&gpu.export = dlsym(library, "cuMemExportToShareableHandle");
    *(void **)(void *)&gpu.import = dlsym(library, "cuMemImportFromShareableHandle");
    *(void **)(void *)&gpu.pool_create = dlsym(library, "cuMemPoolCreate");
    *(void **)(void *)&gpu.allocate = dlsym(library, "cuMemAllocFromPoolAsync");
    *(void **)(void *)&gpu.free = dlsym(library, "cuMemFreeAsync");
    return gpu.export && gpu.import && gpu.pool_create && gpu.allocate && gpu.free &&
           gpu.export(&gpu.descriptor, create_with(type), type, 0) == CUDA_SUCCESS &&
           gpu.pool_create(&gpu.pool, &wanted) == CUDA_SUCCESS;
}

void mappings_import_release(void) {
    CUmemGenericAllocationHandle block;
    check((cudaError_t)gpu.import(&block, (void *)(size_t)gpu.descriptor,
                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
          "cuMemImportFromShareableHandle");
    check((cudaError_t)gpu.release(block), "cuMemRelease");
}

void mappings_pool(void) {
    CUdeviceptr pointer;
    check((cudaError_t)gpu.allocate(&pointer, 2 * MIB, gpu.pool, NULL), "cuMemAllocFromPoolAsync");
    check((cudaError_t)gpu.free(pointer, NULL), "cuMemFreeAsync");
}

void mappings_create_release(void) {
    check((cudaError_t)gpu.release(create()), "cuMemRelease");
}

void mappings_map_unmap(void) {
    const CUmemAccessDesc access = {.location = here, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    check((cudaError_t)gpu.map(gpu.place, 2 * MIB, 0, gpu.block, 0), "cuMemMap");
    check((cudaError_t)gpu.allow(gpu.place, 2 * MIB, &access, 1), "cuMemSetAccess");
    check((cudaError_t)gpu.unmap(gpu.place, 2 * MIB), "cuMemUnmap");
}
