/*
 * calls.c - calls of the runtime, or what it makes of them of the driver's.
 */
#include "puppet.h"

void *abi(const char *name) {
    static void *library;
    if (!library && !(library = dlopen("libcuda.so.1", RTLD_NOW)))
        abort();
    void *symbol = dlsym(library, name);
    if (!symbol)
        abort();
    return symbol;
}

#define DO(name, call, ...)                                                                        \
    int do_##name(__VA_ARGS__) {                                                                   \
        READY();                                                                                   \
        return (int)call;                                                                          \
    }

#ifdef PUPPET_DRIVER
static int current_device;
static _Thread_local bool ready;

static int driver_use(int device) {
    CUcontext context;
    int code = (int)cuInit(0);
    code = code ? code : (int)cuDevicePrimaryCtxRetain(&context, device);
    code = code ? code : (int)cuCtxSetCurrent(context);
    if (!code)
        current_device = device;
    ready = !code;
    return code;
}

#define READY()                                                                                    \
    do {                                                                                           \
        int code = ready ? 0 : driver_use(current_device);                                         \
        if (code)                                                                                  \
            return code;                                                                           \
    } while (0)

DO(malloc, cuMemAlloc(p, size), u64 *p, size_t size)
DO(pitch, cuMemAllocPitch(p, pitch, width, height, 4), u64 *p, size_t *pitch, size_t width,
   size_t height)
DO(free, cuMemFree(p), u64 p)
DO(get, cuIpcGetMemHandle(handle, p), void *handle, u64 p)
int do_open(u64 *p, const void *bytes, unsigned flags) {
    CUipcMemHandle handle;
    READY();
    memcpy(&handle, bytes, sizeof(handle));
    return (int)cuIpcOpenMemHandle(p, handle, flags);
}
DO(close, cuIpcCloseMemHandle(p), u64 p)
DO(fill, cuMemsetD8(p, (unsigned char)byte, count), u64 p, int byte, size_t count)
DO(read, cuMemcpyDtoH(to, p, count), void *to, u64 p, size_t count)
DO(write, cuMemcpyHtoD(p, from, count), u64 p, const void *from, size_t count)
DO(sync, (cuCtxSynchronize)(), void)
int do_reset(void) {
    ready = false;
    return (int)cuDevicePrimaryCtxReset(current_device);
}
DO(info, cuMemGetInfo(left, total), size_t *left, size_t *total)
int do_device(int device) {
    return driver_use(device);
}
int do_count(int *count) {
    int code = (int)cuInit(0);
    return code ? code : (int)cuDeviceGetCount(count);
}
int do_peer(int device) {
    CUcontext there;
    READY();
    const int code = (int)cuDevicePrimaryCtxRetain(&there, device);
    return code ? code : (int)cuCtxEnablePeerAccess(there, 0);
}
DO(pool, cuMemAllocAsync(p, size, (CUstream)(uintptr_t)stream), u64 *p, size_t size, u64 stream)
DO(unpool, cuMemFreeAsync(p, NULL), u64 p)
DO(evcreate, cuEventCreate((CUevent *)event, flags), u64 *event, unsigned flags)
DO(evget, cuIpcGetEventHandle(handle, (CUevent)event), void *handle, u64 event)
int do_evopen(u64 *event, const void *bytes) {
    CUipcEventHandle handle;
    READY();
    memcpy(&handle, bytes, sizeof(handle));
    return (int)cuIpcOpenEventHandle((CUevent *)event, handle);
}
DO(evdestroy, cuEventDestroy((CUevent)event), u64 event)
DO(evrecord, cuEventRecord((CUevent)event, NULL), u64 event)
DO(evquery, cuEventQuery((CUevent)event), u64 event)
DO(evsync, cuEventSynchronize((CUevent)event), u64 event)
DO(host, cuLaunchHostFunc(NULL, fn, arg), void (*fn)(void *), void *arg)
#else
#define READY()

static void *at(u64 p) {
    return (void *)(uintptr_t)p;
}

/* The runtime leaves pointers alone where it fails. */
int do_malloc(u64 *p, size_t size) {
    void *out = NULL;
    const int code = (int)cudaMalloc(&out, size);
    *p = (uintptr_t)out;
    return code;
}
int do_pitch(u64 *p, size_t *pitch, size_t width, size_t height) {
    void *out = NULL;
    const int code = (int)cudaMallocPitch(&out, pitch, width, height);
    *p = (uintptr_t)out;
    return code;
}
DO(free, cudaFree(at(p)), u64 p)
DO(get, cudaIpcGetMemHandle(handle, at(p)), void *handle, u64 p)
int do_open(u64 *p, const void *bytes, unsigned flags) {
    cudaIpcMemHandle_t handle;
    void *out = NULL;
    memcpy(&handle, bytes, sizeof(handle));
    const int code = (int)cudaIpcOpenMemHandle(&out, handle, flags);
    *p = (uintptr_t)out;
    return code;
}
DO(close, cudaIpcCloseMemHandle(at(p)), u64 p)
DO(fill, cudaMemset(at(p), byte, count), u64 p, int byte, size_t count)
DO(read, cudaMemcpy(to, at(p), count, cudaMemcpyDeviceToHost), void *to, u64 p, size_t count)
DO(write, cudaMemcpy(at(p), from, count, cudaMemcpyHostToDevice), u64 p, const void *from,
   size_t count)
DO(sync, cudaDeviceSynchronize(), void)
DO(reset, cudaDeviceReset(), void)
DO(info, cudaMemGetInfo(left, total), size_t *left, size_t *total)
DO(device, cudaSetDevice(device), int device)
DO(peer, cudaDeviceEnablePeerAccess(device, 0), int device)
int do_pool(u64 *p, size_t size, u64 stream) {
    void *out = NULL;
    const int code = (int)cudaMallocAsync(&out, size, (cudaStream_t)(uintptr_t)stream);
    *p = (uintptr_t)out;
    return code;
}
DO(unpool, cudaFreeAsync(at(p), NULL), u64 p)
DO(count, cudaGetDeviceCount(count), int *count)
DO(evcreate, cudaEventCreateWithFlags((cudaEvent_t *)event, flags), u64 *event, unsigned flags)
DO(evget, cudaIpcGetEventHandle(handle, (cudaEvent_t)event), void *handle, u64 event)
int do_evopen(u64 *event, const void *bytes) {
    cudaIpcEventHandle_t handle;
    memcpy(&handle, bytes, sizeof(handle));
    return (int)cudaIpcOpenEventHandle((cudaEvent_t *)event, handle);
}
DO(evdestroy, cudaEventDestroy((cudaEvent_t)event), u64 event)
DO(evrecord, cudaEventRecord((cudaEvent_t)event, NULL), u64 event)
DO(evquery, cudaEventQuery((cudaEvent_t)event), u64 event)
DO(evsync, cudaEventSynchronize((cudaEvent_t)event), u64 event)
DO(host, cudaLaunchHostFunc(NULL, fn, arg), void (*fn)(void *), void *arg)
#endif

int do_range(u64 *base, size_t *size, u64 p) {
#ifdef VENDOR_HIP
    return (int)hipMemGetAddressRange((void **)base, size, at(p));
#else
    return (int)CU(cuMemGetAddressRange)(base, size, p);
#endif
}
