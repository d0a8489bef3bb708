/*
 * refused.c - each IPC call of CUDA's, and each call for memory of cuMemCreate and pools, with each
 * code that a driver may answer it with. The simulated driver is told the code for a call by
 * GPUSHARE_SIM_IPC_CODE and GPUSHARE_SIM_MEMORY_CODE.
 *
 *   refused get|open|close|event-get|event-open CODE...   by the runtime's name
 *   refused drivers-get|... CODE...                       by the driver's
 *   refused cuMemMap|... CODE...                          memory of cuMemCreate, pools
 *
 * Prints the codes that came back. Nothing is asked of memory that is not there.
 */
#include "../common/system_headers.h"
#include <cuda.h>
#include <cuda_runtime_api.h>

static struct {
    void *memory;
    cudaEvent_t event;
    cudaIpcMemHandle_t handle;
    cudaIpcEventHandle_t event_handle;
} state;

static int get(void) {
    return cudaIpcGetMemHandle(&state.handle, state.memory);
}
static int open_it(void) {
    void *q;
    return cudaIpcOpenMemHandle(&q, state.handle, cudaIpcMemLazyEnablePeerAccess);
}
static int close_it(void) {
    return cudaIpcCloseMemHandle(state.memory);
}
static int event_get(void) {
    return cudaIpcGetEventHandle(&state.event_handle, state.event);
}
static int event_open(void) {
    cudaEvent_t event;
    return cudaIpcOpenEventHandle(&event, state.event_handle);
}

static int drivers_get(void) {
    CUipcMemHandle handle;
    return cuIpcGetMemHandle(&handle, (CUdeviceptr)state.memory);
}
static int drivers_open(void) {
    CUipcMemHandle handle;
    CUdeviceptr q;
    memcpy(&handle, &state.handle, sizeof(handle));
    return cuIpcOpenMemHandle(&q, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}
static int drivers_close(void) {
    return cuIpcCloseMemHandle((CUdeviceptr)state.memory);
}
static int drivers_event_get(void) {
    CUipcEventHandle handle;
    return cuIpcGetEventHandle(&handle, state.event);
}
static int drivers_event_open(void) {
    CUipcEventHandle handle;
    CUevent event;
    memcpy(&handle, &state.event_handle, sizeof(handle));
    return cuIpcOpenEventHandle(&event, handle);
}

/* --- memory of cuMemCreate, and pools: all is as it should be, but for the answer --- */

enum { BLOCK = 2 << 20 };
#define POSIX CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
static const CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                           .requestedHandleTypes = POSIX,
                                           .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
static const CUmemAccessDesc access_here = {{.type = CU_MEM_LOCATION_TYPE_DEVICE},
                                            CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
static const CUmemPoolProps pool_wanted = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                           .handleTypes = POSIX,
                                           .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

static struct {
    CUdeviceptr place, pointer; /* of two blocks, of which the first is mapped; of the pool */
    CUmemGenericAllocationHandle handle;
    CUmemoryPool pool;
    CUmemPoolPtrExportData data;
    int descriptor;
} made;

#define MEMORY(name, ...)                                                                          \
    static int on_##name(void) {                                                                   \
        return (int)name(__VA_ARGS__);                                                             \
    }
#define RESULT(type) (&(type){0})
MEMORY(cuMemAddressReserve, RESULT(CUdeviceptr), BLOCK, 0, 0, 0)
MEMORY(cuMemAddressFree, made.place, (size_t)2 * BLOCK)
MEMORY(cuMemCreate, RESULT(CUmemGenericAllocationHandle), BLOCK, &wanted, 0)
MEMORY(cuMemRelease, made.handle)
MEMORY(cuMemRetainAllocationHandle, RESULT(CUmemGenericAllocationHandle), (void *)made.place)
MEMORY(cuMemMap, made.place + BLOCK, BLOCK, 0, made.handle, 0)
MEMORY(cuMemUnmap, made.place, BLOCK)
MEMORY(cuMemSetAccess, made.place, BLOCK, &access_here, 1)
MEMORY(cuMemExportToShareableHandle, RESULT(int), made.handle, POSIX, 0)
MEMORY(cuMemImportFromShareableHandle, RESULT(CUmemGenericAllocationHandle),
       (void *)(size_t)made.descriptor, POSIX)
MEMORY(cuMemGetHandleForAddressRange, RESULT(int), made.place, BLOCK,
       CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0)
MEMORY(cuMemMapArrayAsync, RESULT(CUarrayMapInfo), 1, NULL)
MEMORY(cuImportExternalMemory, RESULT(CUexternalMemory), RESULT(CUDA_EXTERNAL_MEMORY_HANDLE_DESC))
MEMORY(cuMulticastCreate, RESULT(CUmemGenericAllocationHandle), RESULT(CUmulticastObjectProp))
MEMORY(cuMemPoolCreate, RESULT(CUmemoryPool), &pool_wanted)
MEMORY(cuMemPoolDestroy, made.pool)
MEMORY(cuMemPoolExportToShareableHandle, RESULT(int), made.pool, POSIX, 0)
MEMORY(cuMemPoolImportFromShareableHandle, RESULT(CUmemoryPool), (void *)(size_t)made.descriptor,
       POSIX, 0)
MEMORY(cuMemPoolExportPointer, &made.data, made.pointer)
MEMORY(cuMemPoolImportPointer, RESULT(CUdeviceptr), made.pool, &made.data)
MEMORY(cuMemAllocFromPoolAsync, RESULT(CUdeviceptr), BLOCK, made.pool, NULL)

static int make_memory(void) {
    return cuMemCreate(&made.handle, BLOCK, &wanted, 0) ||
           cuMemAddressReserve(&made.place, (size_t)2 * BLOCK, 0, 0, 0) ||
           cuMemMap(made.place, BLOCK, 0, made.handle, 0) ||
           cuMemSetAccess(made.place, BLOCK, &access_here, 1) ||
           cuMemExportToShareableHandle(&made.descriptor, made.handle, POSIX, 0) ||
           cuMemPoolCreate(&made.pool, &pool_wanted) ||
           cuMemAllocFromPoolAsync(&made.pointer, BLOCK, made.pool, NULL) ||
           cuMemPoolExportPointer(&made.data, made.pointer);
}

static void end_memory(void) {
    cuMemFreeAsync(made.pointer, NULL);
    cudaDeviceSynchronize();
    cuMemPoolDestroy(made.pool);
    close(made.descriptor);
    cuMemUnmap(made.place, BLOCK);
    cuMemAddressFree(made.place, (size_t)2 * BLOCK);
    cuMemRelease(made.handle);
}

static const struct {
    const char *name;
    int (*call)(void);
} calls[] = {
    {"get", get},
    {"open", open_it},
    {"close", close_it},
    {"event-get", event_get},
    {"event-open", event_open},
    {"drivers-get", drivers_get},
    {"drivers-open", drivers_open},
    {"drivers-close", drivers_close},
    {"drivers-event-get", drivers_event_get},
    {"drivers-event-open", drivers_event_open},
#define ROW(name)                                                                                  \
    { #name, on_##name }
    ROW(cuMemAddressReserve),
    ROW(cuMemAddressFree),
    ROW(cuMemCreate),
    ROW(cuMemRelease),
    ROW(cuMemRetainAllocationHandle),
    ROW(cuMemMap),
    ROW(cuMemUnmap),
    ROW(cuMemSetAccess),
    ROW(cuMemExportToShareableHandle),
    ROW(cuMemImportFromShareableHandle),
    ROW(cuMemGetHandleForAddressRange),
    ROW(cuMemMapArrayAsync),
    ROW(cuImportExternalMemory),
    ROW(cuMulticastCreate),
    ROW(cuMemPoolCreate),
    ROW(cuMemPoolDestroy),
    ROW(cuMemPoolExportToShareableHandle),
    ROW(cuMemPoolImportFromShareableHandle),
    ROW(cuMemPoolExportPointer),
    ROW(cuMemPoolImportPointer),
    ROW(cuMemAllocFromPoolAsync),
};

int main(int argc, char **argv) {
    unsigned which = 0;
    while (argc > 1 && which < sizeof(calls) / sizeof(calls[0]) &&
           strcmp(argv[1], calls[which].name) != 0)
        which++;
    const bool is_memory = argc > 1 && strncmp(argv[1], "cu", 2) == 0;
    const char *const variable = is_memory ? "GPUSHARE_SIM_MEMORY_CODE" : "GPUSHARE_SIM_IPC_CODE";
    if (argc < 2 || which == sizeof(calls) / sizeof(calls[0]) ||
        cudaMalloc(&state.memory, 2 << 20) ||
        cudaEventCreateWithFlags(&state.event, cudaEventInterprocess | cudaEventDisableTiming) ||
        get() || event_get() || (is_memory && make_memory()))
        return 2;
    for (int i = 2; i < argc; i++) {
        setenv(variable, argv[i], 1);
        printf("%d\n", calls[which].call());
        setenv(variable, "", 1);
    }
    if (is_memory)
        end_memory();
    cudaEventDestroy(state.event);
    cudaFree(state.memory);
    return 0;
}
