/*
 * pool.c - memory pools between two processes: allocated from, freed and destroyed as they must not
 * be.
 */
#include "misuse.h"

#define POSIX CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static CUmemoryPool make_pool_with(CUmemAllocationHandleType types) {
    const CUmemPoolProps wanted = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                   .handleTypes = types,
                                   .location.type = CU_MEM_LOCATION_TYPE_DEVICE};
    CUmemoryPool pool = NULL;
    MUST(cudaFree(NULL));
    MUST(CU(cuMemPoolCreate)(&pool, &wanted));
    return pool;
}

static CUmemoryPool make_pool(void) {
    return make_pool_with(POSIX);
}

static CUdeviceptr from(CUmemoryPool pool) {
    CUdeviceptr pointer = 0;
    MUST(CU(cuMemAllocFromPoolAsync)(&pointer, BLOCK, pool, NULL));
    MUST(cudaDeviceSynchronize());
    return pointer;
}

static void free_on_stream(CUdeviceptr pointer, int expected) {
    CHECK(expected, CU(cuMemFreeAsync)(pointer, NULL));
    MUST(cudaDeviceSynchronize());
}

/* For the other process. */
static void send(CUmemoryPool pool, CUdeviceptr pointer) {
    int descriptor = -1;
    CUmemPoolPtrExportData data;
    MUST(CU(cuMemPoolExportToShareableHandle)(&descriptor, pool, POSIX, 0));
    MUST(CU(cuMemPoolExportPointer)(&data, pointer));
    send_descriptor(descriptor);
    close(descriptor);
    send_bytes(&data, sizeof(data));
}

/* The pool, and a pointer of it, for the other process; until that is through. */
static void pool_owner(void) {
    const CUmemoryPool pool = make_pool();
    const CUdeviceptr pointer = from(pool);
    send(pool, pointer);
    wait_for_peer();
    MUST(CU(cuMemFreeAsync)(pointer, NULL));
    MUST(cudaDeviceSynchronize());
    MUST(CU(cuMemPoolDestroy)(pool));
}

static CUmemoryPool take_pool(void) {
    CUmemoryPool pool = NULL;
    const int descriptor = take_descriptor();
    MUST(cudaFree(NULL));
    MUST(CU(cuMemPoolImportFromShareableHandle)(&pool, (void *)(size_t)descriptor, POSIX, 0));
    close(descriptor);
    return pool;
}

static CUdeviceptr import(CUmemoryPool pool, CUmemPoolPtrExportData *data) {
    CUdeviceptr pointer = 0;
    MUST(CU(cuMemPoolImportPointer)(&pointer, pool, data));
    return pointer;
}

/* --- pool-alloc-imported: a pool is a pool, thinks the importer --- */

static void alloc_imported_importer(void) {
    CUmemPoolPtrExportData data;
    CUdeviceptr mine = 0;
    const CUmemoryPool pool = take_pool();
    take_bytes(&data, sizeof(data));
    if (right())
        free_on_stream(import(pool, &data), CUDA_SUCCESS);
    else
        CHECK(CUDA_ERROR_INVALID_VALUE, CU(cuMemAllocFromPoolAsync)(&mine, BLOCK, pool, NULL));
    MUST(CU(cuMemPoolDestroy)(pool));
    tell();
}

/* --- pool-imported-twice: two parts of a program, each of which imports and frees --- */

static void imported_twice_importer(void) {
    CUmemPoolPtrExportData data;
    const CUmemoryPool pool = take_pool();
    take_bytes(&data, sizeof(data));
    const CUdeviceptr one = import(pool, &data), two = import(pool, &data);
    note(one == two, "both pointers are equal");
    free_on_stream(one, CUDA_SUCCESS);
    if (!right())
        free_on_stream(two, CUDA_ERROR_INVALID_VALUE);
    MUST(CU(cuMemPoolDestroy)(pool));
    tell();
}

/* --- pool-free-order: the one that allocated it frees it first, and allocates again --- */

static void free_order_exporter(void) {
    const CUmemoryPool pool = make_pool();
    const CUdeviceptr first = from(pool);
    MUST(cudaMemset((void *)first, 1, BLOCK));
    send(pool, first);
    wait_for_peer();
    if (right())
        tell(), wait_for_peer();
    free_on_stream(first, CUDA_SUCCESS);
    const CUdeviceptr second = from(pool);
    MUST(cudaMemset((void *)second, 2, BLOCK));
    MUST(cudaDeviceSynchronize());
    if (!right())
        tell(), wait_for_peer();
    MUST(CU(cuMemFreeAsync)(second, NULL));
    MUST(cudaDeviceSynchronize());
    MUST(CU(cuMemPoolDestroy)(pool));
}

static void free_order_importer(void) {
    CUmemPoolPtrExportData data;
    const CUmemoryPool pool = take_pool();
    take_bytes(&data, sizeof(data));
    const CUdeviceptr pointer = import(pool, &data);
    tell();
    wait_for_peer();
    check_byte((void *)pointer, 1);
    free_on_stream(pointer, CUDA_SUCCESS);
    MUST(CU(cuMemPoolDestroy)(pool));
    tell();
}

/* --- pool-destroyed-in-use: what comes after it is forgotten --- */

static void destroyed_in_use(void) {
    const CUmemoryPool pool = make_pool();
    const CUdeviceptr first = from(pool), second = from(pool);
    free_on_stream(first, CUDA_SUCCESS);
    if (right())
        free_on_stream(second, CUDA_SUCCESS);
    CHECK(CUDA_SUCCESS, CU(cuMemPoolDestroy)(pool));
}

/* --- double-free-pool, use-after-free-pool, export-type-missing-pool: one process --- */

static void freed_twice(void) {
    const CUmemoryPool pool = make_pool();
    const CUdeviceptr pointer = from(pool);
    free_on_stream(pointer, CUDA_SUCCESS);
    if (!right())
        free_on_stream(pointer, CUDA_ERROR_INVALID_VALUE);
    MUST(CU(cuMemPoolDestroy)(pool));
}

static void used_after_free(void) {
    char byte = 0;
    const CUmemoryPool pool = make_pool();
    const CUdeviceptr pointer = from(pool);
    if (right())
        CHECK(CUDA_SUCCESS, CU(cuMemcpyDtoH_v2)(&byte, pointer, 1));
    free_on_stream(pointer, CUDA_SUCCESS);
    if (!right())
        CHECK(CUDA_ERROR_INVALID_VALUE, CU(cuMemcpyDtoH_v2)(&byte, pointer, 1));
    MUST(CU(cuMemPoolDestroy)(pool));
}

static void pool_without_type(void) {
    int descriptor = -1;
    const CUmemoryPool pool = make_pool_with(right() ? POSIX : CU_MEM_HANDLE_TYPE_NONE);
    CHECK(right() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE,
          CU(cuMemPoolExportToShareableHandle)(&descriptor, pool, POSIX, 0));
    close(descriptor);
    MUST(CU(cuMemPoolDestroy)(pool));
}

const struct scenario pool_scenarios[] = {
    {"pool-alloc-imported", pool_owner, alloc_imported_importer, false},
    {"pool-imported-twice", pool_owner, imported_twice_importer, false},
    {"pool-free-order", free_order_exporter, free_order_importer, false},
    {"pool-destroyed-in-use", destroyed_in_use, NULL, false},
    {"double-free-pool", freed_twice, NULL, false},
    {"use-after-free-pool", used_after_free, NULL, false},
    {"export-type-missing-pool", pool_without_type, NULL, false},
    {0}};
