/* The runtime's device calls. */
#include "call.h"

cudaError_t CUDARTAPI cudaDriverGetVersion(int *version) {
    FORWARD(NEED_NOTHING, false, cuDriverGetVersion(version));
}

cudaError_t CUDARTAPI cudaRuntimeGetVersion(int *version) {
    if (!version)
        return runtime_end(cudaErrorInvalidValue);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t CUDARTAPI cudaGetDeviceCount(int *count) {
    FORWARD(NEED_DRIVER, false, cuDeviceGetCount(count));
}

cudaError_t CUDARTAPI cudaGetDevice(int *device) {
    const struct driver *driver;
    cudaError_t error = runtime_begin(NEED_DRIVER, false, &driver);
    if (!error && !device)
        error = cudaErrorInvalidValue;
    if (!error)
        *device = runtime_device();
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaSetDevice(int device) {
    const struct driver *driver;
    int count = 0;
    cudaError_t error = runtime_begin(NEED_DRIVER, false, &driver);
    if (!error)
        error = (cudaError_t)driver->cuDeviceGetCount(&count);
    if (!error && (device < 0 || device >= count))
        error = cudaErrorInvalidDevice;
    if (!error)
        error = runtime_set_device(device);
    return runtime_end(error);
}

ONE(cudaDeviceSynchronize, (void), cuCtxSynchronize())

cudaError_t CUDARTAPI cudaDeviceReset(void) {
    const struct driver *driver;
    int device = runtime_device();
    cudaError_t error = runtime_begin(NEED_DRIVER, false, &driver);
    if (error)
        return runtime_end(error);
    error = (cudaError_t)driver->cuDevicePrimaryCtxReset(device);
    runtime_forget_device(device);
    return runtime_end(error);
}

cudaError_t CUDARTAPI cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute,
                                             int device) {
    FORWARD(NEED_DRIVER, false, cuDeviceGetAttribute(value, (CUdevice_attribute)attribute, device));
}

cudaError_t CUDARTAPI cudaDeviceGetPCIBusId(char *id, int length, int device) {
    FORWARD(NEED_DRIVER, false, cuDeviceGetPCIBusId(id, length, device));
}

cudaError_t CUDARTAPI cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    FORWARD(NEED_DRIVER, false, cuDeviceCanAccessPeer(can, device, peer));
}

cudaError_t CUDARTAPI cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
    const struct driver *driver;
    CUcontext context;
    cudaError_t error = runtime_begin(NEED_CONTEXT, false, &driver);
    if (!error)
        error = (cudaError_t)driver->cuDevicePrimaryCtxRetain(&context, peer);
    if (!error)
        error = (cudaError_t)driver->cuCtxEnablePeerAccess(context, flags);
    return runtime_end(error);
}

static cudaError_t fill_properties(const struct driver *driver, struct cudaDeviceProp *out,
                                   int device) {
    static const struct {
        CUdevice_attribute attribute;
        size_t at;
    } fields[] = {
#define FIELD(attribute, member) {attribute, offsetof(struct cudaDeviceProp, member)}
        FIELD(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, major),
        FIELD(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, minor),
        FIELD(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, multiProcessorCount),
        FIELD(CU_DEVICE_ATTRIBUTE_WARP_SIZE, warpSize),
        FIELD(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, maxThreadsPerBlock),
        FIELD(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, pciBusID),
        FIELD(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, pciDeviceID),
        FIELD(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, pciDomainID),
        FIELD(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, unifiedAddressing),
        FIELD(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, managedMemory),
        FIELD(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, canMapHostMemory),
        FIELD(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, asyncEngineCount),
        FIELD(CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, ipcEventSupported),
        FIELD(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, memoryPoolsSupported),
#undef FIELD
    };
    CUuuid uuid;
    CUresult result = driver->cuDeviceGetName(out->name, sizeof out->name, device);
    if (!result)
        result = driver->cuDeviceGetUuid(&uuid, device);
    if (!result)
        result = driver->cuDeviceTotalMem(&out->totalGlobalMem, device);
    for (size_t i = 0; i < sizeof fields / sizeof *fields && !result; i++) {
        int value = 0;
        result = driver->cuDeviceGetAttribute(&value, fields[i].attribute, device);
        memcpy((char *)out + fields[i].at, &value, sizeof value);
    }
    if (!result)
        memcpy(&out->uuid, &uuid, sizeof uuid);
    return (cudaError_t)result;
}

cudaError_t CUDARTAPI cudaGetDeviceProperties(struct cudaDeviceProp *out, int device) {
    const struct driver *driver;
    cudaError_t error = runtime_begin(NEED_DRIVER, false, &driver);
    if (!error && !out)
        error = cudaErrorInvalidValue;
    if (error)
        return runtime_end(error);
    memset(out, 0, sizeof *out);
    return runtime_end(fill_properties(driver, out, device));
}
