/* driver_vmm.c - see driver_vmm.h. A driver without these functions (before 10.2) answers 801. */
#include "driver_vmm.h"

#include <fcntl.h>

#include "directory/file.h"
#include "driver_calls.h"
#include "process/driver_ops.h"
#include "util/high_descriptor.h"

#define CALL(name, ...)                                                                            \
    (gps_calls.name ? (int)gps_calls.name(__VA_ARGS__) : (int)CUDA_ERROR_NOT_SUPPORTED)

/* GPUDirect RDMA is asked for where the device can: the program could have registered its memory
 * with a network card. */
static CUmemAllocationProp block_of(int device) {
    int rdma = 0;
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
    };
    if (CALL(cuDeviceGetAttribute, &rdma,
             CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, device) == GPS_OK)
        prop.allocFlags.gpuDirectRDMACapable = rdma != 0;
    return prop;
}

int gps_vmm_op_granularity(int device, uint64_t *bytes) {
    const CUmemAllocationProp prop = block_of(device);
    size_t found;
    const int code =
        CALL(cuMemGetAllocationGranularity, &found, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    if (code == GPS_OK)
        *bytes = found;
    return code;
}

int gps_vmm_op_create(int device, uint64_t size, uint64_t *block) {
    const CUmemAllocationProp prop = block_of(device);
    CUmemGenericAllocationHandle handle;
    const int code = CALL(cuMemCreate, &handle, size, &prop, 0);
    if (code == GPS_OK)
        *block = handle;
    return code;
}

int gps_vmm_op_release(uint64_t block) {
    return CALL(cuMemRelease, block);
}

/* The driver's descriptor is moved out of the way of programs that expect theirs to be low. */
int gps_vmm_op_export(uint64_t block, int *descriptor) {
    int low = -1;
    const int code = CALL(cuMemExportToShareableHandle, &low, block,
                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (code != GPS_OK)
        return code;
    const int high = gps_descriptor_move_high(low);
    *descriptor = high < 0 ? low : high;
    (void)fcntl(*descriptor, F_SETFD, FD_CLOEXEC);
    return GPS_OK;
}

int gps_vmm_op_import(int descriptor, uint64_t *block) {
    CUmemGenericAllocationHandle handle;
    const int code = CALL(cuMemImportFromShareableHandle, &handle, (void *)(intptr_t)descriptor,
                          CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (code == GPS_OK)
        *block = handle;
    return code;
}

int gps_vmm_op_reserve(uint64_t size, uint64_t *pointer) {
    CUdeviceptr got;
    const int code = CALL(cuMemAddressReserve, &got, size, 0, 0, 0);
    if (code == GPS_OK)
        *pointer = got;
    return code;
}

int gps_vmm_op_unreserve(uint64_t pointer, uint64_t size) {
    return CALL(cuMemAddressFree, pointer, size);
}

int gps_vmm_op_map(uint64_t pointer, uint64_t size, uint64_t block) {
    return CALL(cuMemMap, pointer, size, 0, block, 0);
}

int gps_vmm_op_unmap(uint64_t pointer, uint64_t size) {
    return CALL(cuMemUnmap, pointer, size);
}

int gps_vmm_op_allow(uint64_t pointer, uint64_t size, int device, bool write) {
    const CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
        .flags = write ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_READ,
    };
    return CALL(cuMemSetAccess, pointer, size, &access, 1);
}

/* On the thread's own stream: the legacy one would end a capture under way in another thread. All
 * that these copies read is there already. */
int gps_vmm_op_copy(uint64_t to, uint64_t from, uint64_t size) {
    return CALL(cuMemcpyDtoD_v2_ptds, to, from, size);
}

int gps_vmm_op_copy_out(void *to, uint64_t from, uint64_t size) {
    return CALL(cuMemcpyDtoH_v2_ptds, to, from, size);
}

int gps_vmm_op_pin(void *memory, uint64_t size) {
    return CALL(cuMemHostRegister_v2, memory, size, CU_MEMHOSTREGISTER_PORTABLE);
}
