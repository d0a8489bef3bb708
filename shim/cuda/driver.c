/* driver.c - see driver.h. Also the CUDA side of ops.h. */
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "driver_calls.h"
#include "driver_stream.h"
#include "driver_vmm.h"
#include "hooks.h"
#include "lifecycle/lifecycle.h"
#include "process/ops.h"
#include "resolver.h"
#include "stack/module.h"
#include "upload/write.h"

struct gps_real gps_real;

struct gps_calls gps_calls;

static struct {
    pthread_mutex_t lock;
    _Atomic bool attached;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct row {
    const char *name;
    void **real;
    void *wrapper;
    const void *exported;
    bool writes;
} rows[] = {
#define DRIVER(kind, name, parameters, arguments)                                                  \
    {#name, (void **)&gps_real.name, (void *)gps_hook_##name, (const void *)name, false},
#define WRITE(name, parameters, arguments, what)                                                   \
    {#name, (void **)&gps_real.name, (void *)gps_hook_##name, (const void *)name, true},
#include "hooks.def"
};
enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

static const struct {
    const char *name;
    void **slot;
} calls[] = {
#define CALL_ROW(name) {#name, (void **)&gps_calls.name},
    GPS_CALLS(CALL_ROW)};

/* --- attaching --- */

static bool is_libcuda(const struct gps_module *module) {
    const char *soname = gps_module_soname(module);
    return soname && strcmp(soname, "libcuda.so.1") == 0;
}

static bool find_libcuda(void *found, const struct gps_module *module) {
    if (!is_libcuda(module))
        return false;
    *(struct gps_module *)found = *module;
    return true;
}

/* A program may dlclose what loaded libcuda; our slots must not dangle. */
static void pin(const struct gps_module *module) {
    (void)dlopen(module->path, RTLD_LAZY | RTLD_NOLOAD);
}

static void fill(const struct gps_module *libcuda) {
    for (size_t i = 0; i < ROW_COUNT; i++)
        *rows[i].real = gps_module_symbol(libcuda, rows[i].name);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        *calls[i].slot = gps_module_symbol(libcuda, calls[i].name);
}

static const struct gps_ops ops;

static bool attach_to(const struct gps_module *libcuda) {
    pin(libcuda);
    pthread_mutex_lock(&state.lock);
    if (!state.attached) {
        fill(libcuda);
        gps_ops = &ops;
        state.attached = true;
    }
    pthread_mutex_unlock(&state.lock);
    return true;
}

bool gps_ops_attach(void) {
    struct gps_module libcuda;
    return state.attached || (gps_module_each(find_libcuda, &libcuda) && attach_to(&libcuda));
}

/* Whoever looks a copy up has found the driver: the configuration is read now if it was not. */
static bool asks_for_writes(void) {
    return gps_life_enter() && gps_write_seen;
}

void *gps_driver_substitute(void *address) {
    struct gps_module module;
    if (!state.attached &&
        !(gps_module_of(address, &module) && is_libcuda(&module) && attach_to(&module)))
        return address;
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (*rows[i].real == address)
            return rows[i].writes && !asks_for_writes() ? address : rows[i].wrapper;
    return address;
}

bool gps_driver_is_ours(const void *address) {
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (rows[i].exported == address || rows[i].wrapper == address)
            return true;
    return false;
}

/* --- ops.h for CUDA --- */

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

static int synchronize(void) {
    return gps_calls.cuCtxSynchronize ? (int)gps_calls.cuCtxSynchronize() : MISSING;
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

static const struct gps_ops ops = {
    .context = context,
    .device = device,
    .uuid = uuid,
    .enter = enter,
    .leave = leave,
    .relax = relax,
    .synchronize = synchronize,
    .capturing = gps_stream_op_capturing,
    .stream_wait = gps_stream_op_wait,
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

/* Asking must not bring one to life, and the pair of retain and release leaves the count as it was.
 */
CUcontext gps_driver_primary(CUdevice of) {
    unsigned int flags;
    int active = 0;
    CUcontext primary = NULL;
    if (!gps_calls.cuDevicePrimaryCtxGetState || !gps_calls.cuDevicePrimaryCtxRetain ||
        gps_calls.cuDevicePrimaryCtxGetState(of, &flags, &active) != CUDA_SUCCESS || !active ||
        gps_calls.cuDevicePrimaryCtxRetain(&primary, of) != CUDA_SUCCESS)
        return NULL;
    (void)(gps_real.cuDevicePrimaryCtxRelease_v2 ? gps_real.cuDevicePrimaryCtxRelease_v2(of)
                                                 : gps_real.cuDevicePrimaryCtxRelease(of));
    return primary;
}

bool gps_driver_has_context(CUcontext of) {
    unsigned int version;
    return gps_calls.cuCtxGetApiVersion &&
           gps_calls.cuCtxGetApiVersion(of, &version) == CUDA_SUCCESS;
}
