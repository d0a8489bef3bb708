/*
 * A driver without a function answers MISSING; one without cuMemCreate (before 10.2) NOT_SUPPORTED.
 */
#include "operations.h"

#include <fcntl.h>
#include <string.h>

#include "calls/address.h"
#include "calls/entry.h"
#include "driver.h"
#include "driver/driver_ops.h"
#include "util/descriptors.h"

#define MISSING                       CUDA_ERROR_NOT_INITIALIZED
#define ASK(table, absent, name, ...) ((int)(table.name ? table.name(__VA_ARGS__) : absent))
#define CALL(name, ...)               ASK(gps_calls, MISSING, name, __VA_ARGS__)
#define REAL(name, ...)               ASK(gps_real, MISSING, name, __VA_ARGS__)
#define VMM(name, ...)                ASK(gps_calls, CUDA_ERROR_NOT_SUPPORTED, name, __VA_ARGS__)
#define VMM_REAL(name, ...)           ASK(gps_real, CUDA_ERROR_NOT_SUPPORTED, name, __VA_ARGS__)

/* --- the context, the device, streams --- */

GPS_YIELD(cuda_ops_context, (uint64_t * out), CUcontext, out, CALL(cuCtxGetCurrent, &got))
GPS_YIELD(cuda_ops_device, (int *ordinal), CUdevice, ordinal, CALL(cuCtxGetDevice, &got))
GPS_PASS(cuda_ops_enter, (uint64_t which), CALL(cuCtxPushCurrent_v2, (CUcontext)which))
GPS_YIELD(stream_context, (uint64_t stream, uint64_t *out), CUcontext, out,
          CALL(cuStreamGetCtx, (CUstream)stream, &got))
GPS_PASS(cuda_ops_stream_wait, (uint64_t stream), REAL(cuStreamSynchronize, (CUstream)stream))

/* _v2 tells the instances of a MIG device apart; drivers before 11.4 have only the other. */
static int cuda_ops_uuid(int ordinal, uint8_t out[GPS_UUID_BYTES]) {
    CUuuid found;
    const int code = gps_calls.cuDeviceGetUuid_v2 ? CALL(cuDeviceGetUuid_v2, &found, ordinal)
                                                  : CALL(cuDeviceGetUuid, &found, ordinal);
    if (code == GPS_OK)
        memcpy(out, found.bytes, GPS_UUID_BYTES);
    return code;
}

static void cuda_ops_leave(void) {
    CUcontext popped;
    gps_calls.cuCtxPopCurrent_v2(&popped);
}

static uint64_t cuda_ops_primary(int ordinal) {
    return (uintptr_t)gps_driver_primary(ordinal);
}

static bool cuda_ops_context_exists(uint64_t which) {
    return gps_driver_has_context((CUcontext)which);
}

static int cuda_ops_relax(int *mode) {
    CUstreamCaptureMode exchanged = (CUstreamCaptureMode)*mode;
    const int code = CALL(cuThreadExchangeStreamCaptureMode, &exchanged);
    if (code == GPS_OK)
        *mode = (int)exchanged;
    return code;
}

GPS_YIELD(cuda_ops_allocate, (uint64_t size, uint64_t *pointer), CUdeviceptr, pointer,
          REAL(cuMemAlloc_v2, &got, size))
GPS_PASS(cuda_ops_release, (uint64_t pointer), REAL(cuMemFree_v2, pointer))

/* A free waits for the device and, in a scope's relaxed mode, ends no other thread's capture, as
 * synchronising the context would. Without room for the scrap it synchronises the context. */
static int cuda_ops_synchronize(void) {
    uint64_t scrap;
    if (cuda_ops_allocate(1, &scrap) == GPS_OK)
        return cuda_ops_release(scrap);
    const int code = REAL(cuCtxSynchronize);
    return gps_code_is_of_capture(code) ? GPS_OK : code;
}

GPS_YIELD(cuda_ops_capturing, (uint64_t stream, bool *captured), CUstreamCaptureStatus, captured,
          CALL(cuStreamIsCapturing, (CUstream)stream, &got))

/* --- memory --- */

/* As the program sees it: an allocation, not its blocks. */
static int cuda_ops_range(uint64_t pointer, uint64_t *base, uint64_t *size) {
    CUdeviceptr start;
    size_t length;
    const struct gps_place at = gps_at(pointer);
    if (at.size) {
        *base = at.base;
        *size = at.size;
        return GPS_OK;
    }
    const int code = REAL(cuMemGetAddressRange_v2, &start, &length, pointer);
    if (code == GPS_OK) {
        *base = start;
        *size = length;
    }
    return code;
}

static int cuda_ops_home(uint64_t pointer, uint64_t *of, int *ordinal) {
    CUcontext owner = NULL;
    int device_ordinal = -1;
    int code =
        of ? REAL(cuPointerGetAttribute, &owner, CU_POINTER_ATTRIBUTE_CONTEXT, pointer) : GPS_OK;
    if (code == GPS_OK)
        code = REAL(cuPointerGetAttribute, &device_ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                    pointer);
    if (code == GPS_OK) {
        if (of)
            *of = (uintptr_t)owner;
        *ordinal = device_ordinal;
    }
    return code;
}

static bool cuda_attribute_get(uint64_t pointer, CUpointer_attribute which, void *value) {
    return REAL(cuPointerGetAttribute, value, which, pointer) == GPS_OK;
}

static enum gps_memory_kind cuda_ops_kind(uint64_t pointer) {
    CUmemorytype type;
    unsigned managed = 0;
    CUmemoryPool pool = NULL;
    CUcontext owner = NULL;
    /* a block without memory has no attributes */
    if (gps_at(pointer).kind == GPS_PLACE_MERGED)
        return GPS_MEMORY_MERGED;
    if (!cuda_attribute_get(pointer, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, &type))
        return GPS_MEMORY_UNKNOWN;
    if (cuda_attribute_get(pointer, CU_POINTER_ATTRIBUTE_IS_MANAGED, &managed) && managed)
        return GPS_MEMORY_MANAGED;
    if (type == CU_MEMORYTYPE_HOST)
        return GPS_MEMORY_HOST;
    if (cuda_attribute_get(pointer, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, &pool) && pool)
        return GPS_MEMORY_POOL;
    return cuda_attribute_get(pointer, CU_POINTER_ATTRIBUTE_CONTEXT, &owner) && !owner
               ? GPS_MEMORY_VMM
               : GPS_MEMORY_DEVICE;
}

GPS_YIELD(cuda_ops_device_count, (int *count), int, count, CALL(cuDeviceGetCount, &got))
GPS_YIELD(cuda_ops_peer, (int here, int there, bool *can), int, can,
          CALL(cuDeviceCanAccessPeer, &got, here, there))

static bool by_mps(int ordinal) {
    int enabled = 0;
    return CALL(cuDeviceGetAttribute, &enabled, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, ordinal) ==
               GPS_OK &&
           enabled;
}

static int cuda_ops_get_handle(uint64_t pointer, uint8_t out[GPS_HANDLE_BYTES]) {
    CUipcMemHandle handle;
    const int code = REAL(cuIpcGetMemHandle, &handle, pointer);
    if (code == GPS_OK)
        memcpy(out, &handle, GPS_HANDLE_BYTES);
    return code;
}

static unsigned cuda_ops_open_flags(void) {
    return GPS_OPEN_FLAGS;
}

static int cuda_ops_open_handle(const uint8_t bytes[GPS_HANDLE_BYTES], uint64_t *pointer) {
    CUipcMemHandle handle;
    CUdeviceptr opened;
    memcpy(&handle, bytes, GPS_HANDLE_BYTES);
    const int code = gps_real.cuIpcOpenMemHandle_v2
                         ? REAL(cuIpcOpenMemHandle_v2, &opened, handle, GPS_OPEN_FLAGS)
                         : REAL(cuIpcOpenMemHandle, &opened, handle, GPS_OPEN_FLAGS);
    if (code == GPS_OK)
        *pointer = opened;
    return code;
}

/* The exporter's pid, in its own pid namespace, lies at byte 8 (H200, driver 580, 2026-11). */
enum { HANDLE_PID_AT = 8 };

static int cuda_ops_open_handle_as(const uint8_t bytes[GPS_HANDLE_BYTES], uint32_t pid,
                                   uint32_t instead, uint64_t *pointer) {
    uint8_t handle[GPS_HANDLE_BYTES];
    memcpy(handle, bytes, sizeof(handle));
    if (memcmp(handle + HANDLE_PID_AT, &pid, sizeof(pid)) != 0)
        return GPS_INVALID_CONTEXT;
    memcpy(handle + HANDLE_PID_AT, &instead, sizeof(instead));
    return cuda_ops_open_handle(handle, pointer);
}

GPS_PASS(cuda_ops_close_handle, (uint64_t pointer), REAL(cuIpcCloseMemHandle, pointer))

/* --- VMM memory --- */

bool gps_operations_rdma(int device) {
    int can = 0;
    return VMM(cuDeviceGetAttribute, &can,
               CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, device) == GPS_OK &&
           can;
}

/* For GPUDirect RDMA where the device has it: a program may register memory with a network card. */
static CUmemAllocationProp cuda_block_of(int device) {
    CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
    };
    prop.allocFlags.gpuDirectRDMACapable = gps_operations_rdma(device);
    return prop;
}

GPS_YIELD(granularity, (int of, uint64_t *bytes), size_t, bytes,
          VMM(cuMemGetAllocationGranularity, &got, (const CUmemAllocationProp[]){cuda_block_of(of)},
              CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
GPS_YIELD(least_granularity, (int of, uint64_t *bytes), size_t, bytes,
          VMM(cuMemGetAllocationGranularity, &got, (const CUmemAllocationProp[]){cuda_block_of(of)},
              CU_MEM_ALLOC_GRANULARITY_MINIMUM))
GPS_YIELD(block_create, (int of, uint64_t size, uint64_t *block), CUmemGenericAllocationHandle,
          block,
          VMM_REAL(cuMemCreate, &got, size, (const CUmemAllocationProp[]){cuda_block_of(of)}, 0))
_Static_assert(sizeof(CUmemAllocationProp) <= sizeof(((struct gps_block_like *)0)->bytes),
               "there is room for it");

GPS_YIELD(block_create_like, (const struct gps_block_like *like, uint64_t size, uint64_t *block),
          CUmemGenericAllocationHandle, block,
          VMM_REAL(cuMemCreate, &got, size, (const CUmemAllocationProp *)(const void *)like->bytes,
                   0))
GPS_PASS(block_release, (uint64_t block), VMM_REAL(cuMemRelease, block))
GPS_YIELD(block_retain, (uint64_t pointer, uint64_t *block), CUmemGenericAllocationHandle, block,
          VMM_REAL(cuMemRetainAllocationHandle, &got, (void *)(uintptr_t)pointer))
GPS_YIELD(block_import, (int descriptor, uint64_t *block), CUmemGenericAllocationHandle, block,
          VMM_REAL(cuMemImportFromShareableHandle, &got, (void *)(intptr_t)descriptor,
                   CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
GPS_YIELD(reserve, (uint64_t size, uint64_t *pointer), CUdeviceptr, pointer,
          VMM_REAL(cuMemAddressReserve, &got, size, 0, 0, 0))
GPS_PASS(unreserve, (uint64_t pointer, uint64_t size), VMM_REAL(cuMemAddressFree, pointer, size))
GPS_PASS(map, (uint64_t pointer, uint64_t size, uint64_t block),
         VMM_REAL(cuMemMap, pointer, size, 0, block, 0))
GPS_PASS(unmap, (uint64_t pointer, uint64_t size), VMM_REAL(cuMemUnmap, pointer, size))

/* The driver's descriptor is moved out of the way of programs that expect theirs to be low. */
static int block_export(uint64_t block, int *descriptor) {
    int low = -1;
    const int code = VMM_REAL(cuMemExportToShareableHandle, &low, block,
                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (code != GPS_OK)
        return code;
    const int high = gps_descriptor_move_high(low);
    *descriptor = high < 0 ? low : high;
    (void)fcntl(*descriptor, F_SETFD, FD_CLOEXEC);
    return GPS_OK;
}

static int cuda_access_allow(uint64_t pointer, uint64_t size, int device, bool write) {
    const CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
        .flags = write ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_READ,
    };
    return VMM_REAL(cuMemSetAccess, pointer, size, &access, 1);
}

/* A driver that does not know an attribute leaves the answer 0. */
static uint64_t cuda_attribute_answer(uint64_t pointer, CUpointer_attribute which) {
    uint64_t value = 0;
    return cuda_attribute_get(pointer, which, &value) ? value : 0;
}

static int mapped_as(uint64_t pointer, struct gps_mapped_as *as) {
    const uint64_t buffer = cuda_attribute_answer(pointer, CU_POINTER_ATTRIBUTE_BUFFER_ID);
    if (!buffer)
        return GPS_INVALID_VALUE;
    *as = (struct gps_mapped_as){
        .buffer = buffer,
        .decompressible =
            cuda_attribute_answer(pointer, CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE) != 0,
        .rdma =
            cuda_attribute_answer(pointer, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE) != 0,
        .types =
            (uint32_t)cuda_attribute_answer(pointer, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES)};
    return GPS_OK;
}

GPS_PASS(upload, (uint64_t to, const void *from, uint64_t size, uint64_t stream),
         REAL(cuMemcpyHtoDAsync_v2, to, from, size, (CUstream)stream))
GPS_PASS(download, (void *to, uint64_t from, uint64_t size, uint64_t stream),
         REAL(cuMemcpyDtoHAsync_v2, to, from, size, (CUstream)stream))
GPS_PASS(stage_make, (uint64_t size, void **stage), CALL(cuMemHostAlloc, stage, size, 0))
GPS_PASS(stage_end, (void *stage), CALL(cuMemFreeHost, stage))
GPS_PASS(stream_state, (uint64_t stream),
         REAL(cuStreamQuery, stream ? (CUstream)stream : CU_STREAM_LEGACY))

GPS_PASS(event_state, (uint64_t event), REAL(cuEventQuery, (CUevent)event))
GPS_PASS(event_free, (uint64_t event), REAL(cuEventDestroy_v2, (CUevent)event))

GPS_YIELD(stream_make, (uint64_t * stream), CUstream, stream,
          CALL(cuStreamCreateWithPriority, &got, CU_STREAM_NON_BLOCKING, 0))
GPS_PASS(stream_end, (uint64_t stream), REAL(cuStreamDestroy_v2, (CUstream)stream))
GPS_YIELD(event_make, (uint64_t * event), CUevent, event,
          REAL(cuEventCreate, &got, CU_EVENT_DISABLE_TIMING))
GPS_PASS(event_record, (uint64_t event, uint64_t stream),
         CALL(cuEventRecord, (CUevent)event, (CUstream)stream))
GPS_PASS(stream_follow, (uint64_t stream, uint64_t event),
         REAL(cuStreamWaitEvent, (CUstream)stream, (CUevent)event, 0))
GPS_PASS(copy_behind, (uint64_t to, uint64_t from, uint64_t size, uint64_t stream),
         REAL(cuMemcpyDtoDAsync_v2, to, from, size, (CUstream)stream))
GPS_PASS(call_behind, (uint64_t stream, void (*done)(void *arg), void *arg),
         CALL(cuLaunchHostFunc, (CUstream)stream, done, arg))
GPS_PASS(zero, (uint64_t pointer, uint64_t size), REAL(cuMemsetD8_v2, pointer, 0, size))

static int cuda_event_record(CUstream stream, CUevent *event) {
    int code = REAL(cuEventCreate, event, CU_EVENT_DISABLE_TIMING);
    if (code != GPS_OK)
        return code;
    code = CALL(cuEventRecord, *event, stream);
    if (code != GPS_OK)
        REAL(cuEventDestroy_v2, *event);
    return code;
}

static int event_mark(uint64_t stream, uint64_t *event) {
    uint64_t context;
    CUevent fresh;
    int code = stream_context(stream, &context);
    if (code == GPS_OK)
        code = cuda_ops_enter(context);
    if (code != GPS_OK)
        return code;
    code = cuda_event_record((CUstream)stream, &fresh);
    cuda_ops_leave();
    if (code == GPS_OK)
        *event = (uintptr_t)fresh;
    return code;
}

static int cuda_ops_memory(uint64_t *available, uint64_t *total) {
    size_t free, all;
    const int code = CALL(cuMemGetInfo_v2, &free, &all);
    if (code != GPS_OK)
        return code;
    *available = free;
    *total = all;
    return GPS_OK;
}

static int pool_has(uint64_t *bytes) {
    CUmemoryPool pool;
    int ordinal;
    cuuint64_t reserved;
    int code = cuda_ops_device(&ordinal);
    if (code == GPS_OK)
        code = CALL(cuDeviceGetMemPool, &pool, ordinal);
    if (code == GPS_OK)
        code = CALL(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
    if (code == GPS_OK)
        *bytes = reserved;
    return code;
}

static const struct gps_names names = {
    .vendor = "CUDA",
    .start = "cuInit",
    .make_block = "cuMemCreate",
    .export_block = "cuMemExportToShareableHandle",
    .make_pooled = "cudaMallocAsync",
    .export_pool = "cudaMemPoolExportToShareableHandle",
    .make_managed = "cudaMallocManaged",
    .event_shared = "cudaEventInterprocess",
    .event_untimed = "cudaEventDisableTiming",
};

/* Functions that every driver has. For all others the caller looks whether they are there. */
static const char *cuda_driver_lacks(void) {
    return !gps_calls.cuCtxGetCurrent       ? "cuCtxGetCurrent"
           : !gps_calls.cuCtxGetDevice      ? "cuCtxGetDevice"
           : !gps_calls.cuCtxPushCurrent_v2 ? "cuCtxPushCurrent_v2"
           : !gps_calls.cuCtxPopCurrent_v2  ? "cuCtxPopCurrent_v2"
                                            : NULL;
}

static const struct gps_operations operations = {
    .vendor = "cuda",
    .lacks = cuda_driver_lacks,
    .names = &names,
    .has_blocks = true,
    .sonames = "libcudart.so\0libcuda.so\0",
    GPS_OPERATIONS_OF_ALL(cuda_ops),
    .forget = gps_kernels_forget,
    .stream_context = stream_context,
    .by_mps = by_mps,
    .granularity = granularity,
    .least_granularity = least_granularity,
    .block_create = block_create,
    .block_create_like = block_create_like,
    .block_release = block_release,
    .block_retain = block_retain,
    .block_export = block_export,
    .block_import = block_import,
    .reserve = reserve,
    .unreserve = unreserve,
    .map = map,
    .unmap = unmap,
    .allow = cuda_access_allow,
    .mapped_as = mapped_as,
    .copy = gps_kernels_copy,
    .copy_out = gps_kernels_copy_out,
    .stream_state = stream_state,
    .event_mark = event_mark,
    .event_state = event_state,
    .event_free = event_free,
    .stream_make = stream_make,
    .stream_end = stream_end,
    .event_make = event_make,
    .event_record = event_record,
    .stream_follow = stream_follow,
    .copy_behind = copy_behind,
    .call_behind = call_behind,
    .zero = zero,
    .upload = upload,
    .download = download,
    .stage_make = stage_make,
    .stage_end = stage_end,
    .pool_has = pool_has,
    .load_kernels = gps_kernels_load,
    .digest = gps_kernels_digest,
    .equal = gps_kernels_equal,
};
_Static_assert(GPS_OPEN_FLAGS == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, "the flag is CUDA's");
_Static_assert(sizeof(CUipcEventHandle) == GPS_HANDLE_BYTES, "handles of events are as wide");
_Static_assert(sizeof(CUipcMemHandle) == GPS_HANDLE_BYTES, "the handle's width is the format's");

static const struct gps_operations *cuda_operations_attach(void) {
    return gps_driver_attach() ? &operations : NULL;
}

bool gps_operations_enter(void) {
    return gps_entry_slowly(cuda_operations_attach);
}
