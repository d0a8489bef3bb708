/* operations.c - see operations.h. The VMM rows are in driver_vmm.c. */
#include "operations.h"

#include <string.h>

#include "driver_calls.h"
#include "driver_vmm.h"
#include "process/driver_ops.h"

#define MISSING CUDA_ERROR_NOT_INITIALIZED

static int context(uint64_t *out) {
    CUcontext current = NULL;
    int code = gps_calls.cuCtxGetCurrent ? (int)gps_calls.cuCtxGetCurrent(&current) : MISSING;
    if (code == GPS_OK)
        *out = (uintptr_t)current;
    return code;
}

static int device(int *ordinal) {
    CUdevice current;
    int code = gps_calls.cuCtxGetDevice ? (int)gps_calls.cuCtxGetDevice(&current) : MISSING;
    if (code == GPS_OK)
        *ordinal = current;
    return code;
}

/* _v2 tells the instances of a MIG device apart; drivers before 11.4 have only the other. */
static int uuid(int ordinal, uint8_t out[GPS_UUID_BYTES]) {
    CUuuid found;
    int code = gps_calls.cuDeviceGetUuid_v2 ? (int)gps_calls.cuDeviceGetUuid_v2(&found, ordinal)
               : gps_calls.cuDeviceGetUuid  ? (int)gps_calls.cuDeviceGetUuid(&found, ordinal)
                                            : MISSING;
    if (code == GPS_OK)
        memcpy(out, found.bytes, GPS_UUID_BYTES);
    return code;
}

static int enter(uint64_t which) {
    return gps_calls.cuCtxPushCurrent_v2 ? (int)gps_calls.cuCtxPushCurrent_v2((CUcontext)which)
                                         : MISSING;
}

static void leave(void) {
    CUcontext popped;
    gps_calls.cuCtxPopCurrent_v2(&popped);
}

static int relax(int *mode) {
    CUstreamCaptureMode exchanged = (CUstreamCaptureMode)*mode;
    int code = gps_calls.cuThreadExchangeStreamCaptureMode
                   ? (int)gps_calls.cuThreadExchangeStreamCaptureMode(&exchanged)
                   : MISSING;
    if (code == GPS_OK)
        *mode = (int)exchanged;
    return code;
}

static int allocate(uint64_t size, uint64_t *pointer) {
    CUdeviceptr got;
    int code = gps_real.cuMemAlloc_v2 ? (int)gps_real.cuMemAlloc_v2(&got, size) : MISSING;
    if (code == GPS_OK)
        *pointer = got;
    return code;
}

static int release(uint64_t pointer) {
    return gps_real.cuMemFree_v2 ? (int)gps_real.cuMemFree_v2(pointer) : MISSING;
}

/* A free waits for the device and, in the relaxed mode of a scope, ends no capture of another
 * thread; synchronising the context would. Without room for one, the context it is. */
static int synchronize(void) {
    uint64_t scrap;
    if (allocate(1, &scrap) == GPS_OK)
        return release(scrap);
    const int code = gps_calls.cuCtxSynchronize ? (int)gps_calls.cuCtxSynchronize() : MISSING;
    return code >= GPS_CAPTURE_UNSUPPORTED && code <= GPS_CAPTURE_LAST ? GPS_OK : code;
}

/* The driver refuses to tell of the legacy stream while another one's capture would be disturbed:
 * then a graph is being made, and the stream takes no part in it. */
static bool capturing(uint64_t stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return gps_calls.cuStreamIsCapturing &&
           gps_calls.cuStreamIsCapturing((CUstream)stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static int stream_wait(uint64_t stream) {
    return gps_calls.cuStreamSynchronize ? (int)gps_calls.cuStreamSynchronize((CUstream)stream)
                                         : MISSING;
}

static int range(uint64_t pointer, uint64_t *base, uint64_t *size) {
    CUdeviceptr start;
    size_t length;
    int code = gps_calls.cuMemGetAddressRange_v2
                   ? (int)gps_calls.cuMemGetAddressRange_v2(&start, &length, pointer)
                   : MISSING;
    if (code == GPS_OK) {
        *base = start;
        *size = length;
    }
    return code;
}

static int home(uint64_t pointer, uint64_t *of, int *ordinal) {
    CUcontext owner = NULL;
    int device_ordinal = -1;
    if (!gps_calls.cuPointerGetAttribute)
        return MISSING;
    int code = (int)gps_calls.cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, pointer);
    if (code == GPS_OK)
        code = (int)gps_calls.cuPointerGetAttribute(&device_ordinal,
                                                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer);
    if (code == GPS_OK) {
        *of = (uintptr_t)owner;
        *ordinal = device_ordinal;
    }
    return code;
}

static bool attribute(uint64_t pointer, CUpointer_attribute which, void *value) {
    return gps_calls.cuPointerGetAttribute &&
           gps_calls.cuPointerGetAttribute(value, which, pointer) == CUDA_SUCCESS;
}

static enum gps_memory_kind kind(uint64_t pointer) {
    CUmemorytype type;
    unsigned managed = 0;
    CUmemoryPool pool = NULL;
    CUcontext owner = NULL;
    if (!attribute(pointer, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, &type))
        return GPS_MEMORY_UNKNOWN;
    if (attribute(pointer, CU_POINTER_ATTRIBUTE_IS_MANAGED, &managed) && managed)
        return GPS_MEMORY_MANAGED;
    if (type == CU_MEMORYTYPE_HOST)
        return GPS_MEMORY_HOST;
    if (attribute(pointer, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, &pool) && pool)
        return GPS_MEMORY_POOL;
    return attribute(pointer, CU_POINTER_ATTRIBUTE_CONTEXT, &owner) && !owner ? GPS_MEMORY_VMM
                                                                              : GPS_MEMORY_DEVICE;
}

static int reaches(const uint8_t wanted[GPS_UUID_BYTES]) {
    uint8_t found[GPS_UUID_BYTES];
    int here, count = 0, can = 0;
    if (!gps_calls.cuDeviceGetCount || !gps_calls.cuDeviceCanAccessPeer ||
        device(&here) != GPS_OK || gps_calls.cuDeviceGetCount(&count) != CUDA_SUCCESS)
        return -1;
    for (int there = 0; there < count; there++) {
        if (uuid(there, found) != GPS_OK || memcmp(found, wanted, GPS_UUID_BYTES) != 0)
            continue;
        if (there == here)
            return 1;
        return gps_calls.cuDeviceCanAccessPeer(&can, here, there) == CUDA_SUCCESS ? can != 0 : -1;
    }
    return -1; /* not visible in this process */
}

static int get_handle(uint64_t pointer, uint8_t out[GPS_HANDLE_BYTES]) {
    CUipcMemHandle handle;
    int code =
        gps_real.cuIpcGetMemHandle ? (int)gps_real.cuIpcGetMemHandle(&handle, pointer) : MISSING;
    if (code == GPS_OK)
        memcpy(out, &handle, GPS_HANDLE_BYTES);
    return code;
}

static int open_handle(const uint8_t bytes[GPS_HANDLE_BYTES], uint64_t *pointer) {
    CUipcMemHandle handle;
    CUdeviceptr opened;
    memcpy(&handle, bytes, GPS_HANDLE_BYTES);
    __typeof__(cuIpcOpenMemHandle_v2) *open = gps_real.cuIpcOpenMemHandle_v2
                                                  ? gps_real.cuIpcOpenMemHandle_v2
                                                  : gps_real.cuIpcOpenMemHandle;
    int code = open ? (int)open(&opened, handle, GPS_OPEN_FLAGS) : MISSING;
    if (code == GPS_OK)
        *pointer = opened;
    return code;
}

static int close_handle(uint64_t pointer) {
    return gps_real.cuIpcCloseMemHandle ? (int)gps_real.cuIpcCloseMemHandle(pointer) : MISSING;
}

static const struct gps_ops operations = {
    .context = context,
    .device = device,
    .uuid = uuid,
    .enter = enter,
    .leave = leave,
    .relax = relax,
    .synchronize = synchronize,
    .capturing = capturing,
    .stream_wait = stream_wait,
    .allocate = allocate,
    .release = release,
    .range = range,
    .home = home,
    .kind = kind,
    .reaches = reaches,
    .get_handle = get_handle,
    .open_handle = open_handle,
    .close_handle = close_handle,
    .granularity = gps_vmm_op_granularity,
    .block_create = gps_vmm_op_create,
    .block_release = gps_vmm_op_release,
    .block_export = gps_vmm_op_export,
    .block_import = gps_vmm_op_import,
    .reserve = gps_vmm_op_reserve,
    .unreserve = gps_vmm_op_unreserve,
    .map = gps_vmm_op_map,
    .unmap = gps_vmm_op_unmap,
    .allow = gps_vmm_op_allow,
    .copy = gps_vmm_op_copy,
    .copy_out = gps_vmm_op_copy_out,
    .pin = gps_vmm_op_pin,
};
_Static_assert(GPS_OPEN_FLAGS == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, "the flag is CUDA's");
_Static_assert(sizeof(CUipcEventHandle) == GPS_HANDLE_BYTES, "handles of events are as wide");
_Static_assert(sizeof(CUipcMemHandle) == GPS_HANDLE_BYTES, "the handle's width is the format's");

void gps_operations_use(void) {
    gps_ops = &operations;
}
