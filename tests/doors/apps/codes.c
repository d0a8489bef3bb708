/*
 * codes.c - every hooked function with null pointers and handles of nothing, before the driver is
 * initialised, without a context and with one, and what that does to errno. A line a call.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "../../common/system_headers.h"

#define CALL(...)                                                                                  \
    do {                                                                                           \
        errno = 77;                                                                                \
        const int code = (int)(__VA_ARGS__);                                                       \
        printf("%s: %s = %d, errno %s\n", when, #__VA_ARGS__, code, errno == 77 ? "kept" : "");    \
        fflush(stdout);                                                                            \
    } while (0)

#define NOTHING 0x1000u /* an address where nothing is */

/* What the driver answers with a crash, bare or not, is left out: events of nothing. */
static void driver_calls(const char *when) {
    CUipcMemHandle handle;
    CUipcEventHandle event_handle;
    CUdeviceptr pointer = 0;
    CUdeviceptr_v1 old_pointer = 0;
    unsigned old_pitch = 0;
    size_t pitch = 0;
    void *found = NULL;
    CUdriverProcAddressQueryResult status;
    memset(&handle, 0, sizeof handle);
    memset(&event_handle, 0, sizeof event_handle);
    CALL(cuGetProcAddress(NULL, &found, 12000, 0));
    CALL(cuGetProcAddress("cuInit", NULL, 12000, 0));
    CALL(cuGetProcAddress(NULL, NULL, 0, 99));
    CALL(cuGetProcAddress("cuInit", &found, -1, 0));
    CALL(cuGetProcAddress("cuInit", &found, 12000, ~0ull));
    CALL(cuGetProcAddress_v2(NULL, &found, 12000, 0, &status));
    CALL(cuGetProcAddress_v2("cuInit", NULL, 12000, 0, &status));
    CALL(cuGetProcAddress_v2("cuInit", NULL, 12000, 0, NULL));
    CALL(cuGetProcAddress_v2("", &found, 12000, 0, NULL));
    CALL(cuInit(1));
    CALL(cuMemAlloc_v2(NULL, 1024));
    CALL(cuMemAlloc_v2(&pointer, 0));
    CALL(cuMemAlloc_v2(NULL, 0));
    CALL(cuMemAlloc_v2(&pointer, ~(size_t)0));
    CALL(cuMemAlloc_v2(&pointer, (size_t)1 << 60));
    CALL(cuMemAllocPitch_v2(NULL, NULL, 0, 0, 0));
    CALL(cuMemAllocPitch_v2(&pointer, NULL, 64, 64, 4));
    CALL(cuMemAllocPitch_v2(NULL, &pitch, 64, 64, 4));
    CALL(cuMemAllocPitch_v2(&pointer, &pitch, 64, 64, 3));
    CALL(cuMemAllocPitch_v2(&pointer, &pitch, 64, ~(size_t)0, 4));
    CALL(cuMemAllocPitch_v2(&pointer, &pitch, 0, 0, 4));
    CALL(cuMemAlloc(NULL, 1024));
    CALL(cuMemAlloc(&old_pointer, 0));
    CALL(cuMemAllocPitch(NULL, NULL, 0, 0, 0));
    CALL(cuMemAllocPitch(&old_pointer, &old_pitch, 0, 0, 4));
    CALL(cuMemFree_v2(0));
    CALL(cuMemFree_v2(NOTHING));
    CALL(cuMemFree_v2(~(CUdeviceptr)0));
    CALL(cuMemFree(0));
    CALL(cuMemFree(NOTHING));
    CALL(cuIpcGetMemHandle(NULL, 0));
    CALL(cuIpcGetMemHandle(NULL, NOTHING));
    CALL(cuIpcGetMemHandle(&handle, 0));
    CALL(cuIpcGetMemHandle(&handle, NOTHING));
    CALL(cuIpcOpenMemHandle(NULL, handle, 1));
    CALL(cuIpcOpenMemHandle(&pointer, handle, 1));
    CALL(cuIpcOpenMemHandle(&pointer, handle, 0));
    CALL(cuIpcOpenMemHandle(&pointer, handle, ~0u));
    CALL(cuIpcOpenMemHandle_v2(NULL, handle, 1));
    CALL(cuIpcOpenMemHandle_v2(&pointer, handle, 1));
    CALL(cuIpcOpenMemHandle_v2(&pointer, handle, 2));
    CALL(cuIpcCloseMemHandle(0));
    CALL(cuIpcCloseMemHandle(NOTHING));
    CALL(cuEventCreate(NULL, 0));
    CALL(cuEventCreate(NULL, 4));
    CALL(cuEventCreate(NULL, ~0u));
    CALL(cuEventDestroy(NULL));
    CALL(cuEventDestroy_v2(NULL));
    CALL(cuIpcGetEventHandle(NULL, NULL));
    CALL(cuIpcGetEventHandle(&event_handle, NULL));
    CALL(cuIpcOpenEventHandle(NULL, event_handle));
    CALL(cuCtxDestroy(NULL));
    CALL(cuCtxDestroy_v2(NULL));
    CALL(cuCtxDetach(NULL));
    CALL(cuDevicePrimaryCtxRelease(-1));
    CALL(cuDevicePrimaryCtxRelease_v2(99));
    CALL(cuDevicePrimaryCtxReset(-1));
    CALL(cuDevicePrimaryCtxReset_v2(99));
}

static void runtime_calls(const char *when) {
    cudaIpcMemHandle_t handle;
    cudaIpcEventHandle_t event_handle;
    void *pointer = NULL;
    size_t pitch = 0;
    memset(&handle, 0, sizeof handle);
    memset(&event_handle, 0, sizeof event_handle);
    CALL(cudaMalloc(NULL, 1024));
    CALL(cudaMalloc(&pointer, 0));
    CALL(cudaMalloc(NULL, 0));
    CALL(cudaMalloc(&pointer, ~(size_t)0));
    CALL(cudaMallocPitch(NULL, NULL, 0, 0));
    CALL(cudaMallocPitch(&pointer, NULL, 64, 64));
    CALL(cudaMallocPitch(NULL, &pitch, 64, 64));
    CALL(cudaMallocPitch(&pointer, &pitch, 0, 0));
    CALL(cudaMalloc3D(NULL, (struct cudaExtent){64, 4, 4}));
    CALL(cudaFree(NULL));
    CALL(cudaFree((void *)(uintptr_t)NOTHING));
    CALL(cudaIpcGetMemHandle(&handle, NULL)); /* of nowhere to put it the runtime dies */
    CALL(cudaIpcGetMemHandle(&handle, (void *)(uintptr_t)NOTHING));
    CALL(cudaIpcOpenMemHandle(NULL, handle, 1));
    CALL(cudaIpcOpenMemHandle(&pointer, handle, 1));
    CALL(cudaIpcOpenMemHandle(&pointer, handle, 0));
    CALL(cudaIpcCloseMemHandle(NULL));
    CALL(cudaIpcCloseMemHandle((void *)(uintptr_t)NOTHING));
    CALL(cudaIpcGetEventHandle(&event_handle, NULL));
    CALL(cudaIpcOpenEventHandle(NULL, event_handle));
    CALL(cudaEventCreate(NULL));
    CALL(cudaEventCreateWithFlags(NULL, 0));
    CALL(cudaEventDestroy(NULL));
}

/* Good calls, for errno; and freed memory again, which is reported. */
static void good_calls(const char *when) {
    cudaIpcMemHandle_t handle;
    cudaIpcEventHandle_t event_handle;
    cudaEvent_t event = NULL, plain = NULL;
    void *pointer = NULL, *rows = NULL, *opened = NULL;
    size_t pitch;
    CALL(cudaMalloc(&pointer, 1024));
    CALL(cudaMallocPitch(&rows, &pitch, 100, 100));
    CALL(cudaIpcGetMemHandle(&handle, pointer));
    CALL(cudaIpcGetMemHandle(&handle, pointer));
    CALL(cudaIpcOpenMemHandle(&opened, handle, 1));
    CALL(cudaFree((char *)pointer + 256));
    CALL(cudaIpcCloseMemHandle(pointer));
    CALL(cudaFree(pointer));
    CALL(cudaFree(pointer));
    CALL(cudaFree(rows));
    CALL(cudaFree(rows));
    CALL(cudaEventCreate(&plain));
    CALL(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
    CALL(cudaIpcGetEventHandle(&event_handle, plain));
    CALL(cudaIpcGetEventHandle(&event_handle, event));
    CALL(cudaIpcOpenEventHandle(&plain, event_handle));
    CALL(cudaEventDestroy(event));
    CALL(cudaDeviceReset());
    CALL(cudaDeviceReset());
}

static void *no_context(void *arg) {
    driver_calls("thread without a context");
    return arg;
}

int main(void) {
    pthread_t thread;
    const char *when = "at first";
    CUcontext context = NULL, made = NULL;
    driver_calls("before cuInit");
    printf("cuInit = %d\n", (int)cuInit(0)); /* errno is as the driver left it */
    driver_calls("without a context");
    CALL(cuDevicePrimaryCtxRetain(&context, 0));
    CALL(cuCtxSetCurrent(context));
    driver_calls("with a context");
    if (pthread_create(&thread, NULL, no_context, NULL) == 0)
        pthread_join(thread, NULL);
    runtime_calls("runtime");
    good_calls("good");
    CALL(cudaSetDevice(0));
    good_calls("after a reset");
    CALL(cudaSetDevice(0));
    CALL(cuCtxCreate_v2(&made, 0, 0));
    good_calls("in a context of its own");
    CALL(cuCtxDestroy_v2(made));
    CALL(cuDevicePrimaryCtxRelease_v2(0));
    driver_calls("after the release");
    return 0;
}
