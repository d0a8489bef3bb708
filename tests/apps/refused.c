/*
 * refused.c - each IPC call of CUDA's with each code that a driver may answer it with. The
 * simulated driver is told the code for a call by GPUSHARE_SIM_IPC_CODE.
 *
 *   refused get|open|close|event-get|event-open CODE...   by the runtime's name
 *   refused drivers-get|... CODE...                       by the driver's
 *
 * Prints the codes that came back. Nothing is asked of memory that is not there.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
};

int main(int argc, char **argv) {
    unsigned which = 0;
    while (argc > 1 && which < sizeof(calls) / sizeof(calls[0]) &&
           strcmp(argv[1], calls[which].name) != 0)
        which++;
    if (argc < 2 || which == sizeof(calls) / sizeof(calls[0]) ||
        cudaMalloc(&state.memory, 2 << 20) ||
        cudaEventCreateWithFlags(&state.event, cudaEventInterprocess | cudaEventDisableTiming) ||
        get() || event_get())
        return 2;
    for (int i = 2; i < argc; i++) {
        setenv("GPUSHARE_SIM_IPC_CODE", argv[i], 1);
        printf("%d\n", calls[which].call());
        setenv("GPUSHARE_SIM_IPC_CODE", "", 1);
    }
    cudaEventDestroy(state.event);
    cudaFree(state.memory);
    return 0;
}
