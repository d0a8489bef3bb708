/*
 * driver.h - doors made of driver functions: linked, or found by name.
 *
 * A finder is given the names of the ABI. What is not hooked (devices, contexts) goes by a door of
 * its own, a plain dlsym with libcuda's handle, so that a door under test is asked for nothing
 * else.
 */
#pragma once

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include "walk.h"

static struct {
    __typeof__(cuInit) *init;
    __typeof__(cuMemAlloc_v2) *alloc;
    __typeof__(cuMemFree_v2) *free;
    __typeof__(cuIpcGetMemHandle) *export;
    __typeof__(cuIpcOpenMemHandle_v2) *open;
    __typeof__(cuIpcCloseMemHandle) *close;
} driver;

static int driver_alloc(void **out, size_t size) {
    CUdeviceptr pointer = 0;
    const CUresult result = driver.alloc(&pointer, size);
    *out = (void *)(uintptr_t)pointer;
    return (int)result;
}

static int driver_free(void *pointer) {
    return (int)driver.free((CUdeviceptr)(uintptr_t)pointer);
}

static int driver_export(void *handle, void *pointer) {
    return (int)driver.export(handle, (CUdeviceptr)(uintptr_t)pointer);
}

static int driver_open(void **out, const void *handle) {
    CUipcMemHandle same;
    CUdeviceptr pointer = 0;
    memcpy(&same, handle, sizeof same);
    const CUresult result = driver.open(&pointer, same, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    *out = (void *)(uintptr_t)pointer;
    return (int)result;
}

static int driver_close(void *pointer) {
    return (int)driver.close((CUdeviceptr)(uintptr_t)pointer);
}

/* Makes the primary context of device 0 current. */
static int driver_context(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    CUcontext context = NULL;
    if (!library)
        return CUDA_ERROR_NO_DEVICE;
    __typeof__(cuDevicePrimaryCtxRetain) *retain =
        (__typeof__(retain))dlsym(library, "cuDevicePrimaryCtxRetain");
    __typeof__(cuCtxSetCurrent) *make_current =
        (__typeof__(make_current))dlsym(library, "cuCtxSetCurrent");
    const CUresult result = retain(&context, 0);
    return (int)(result ? result : make_current(context));
}

static const struct door driver_door = {driver_alloc, driver_free, driver_export, driver_open,
                                        driver_close};

static inline int driver_walk(void) {
    const int code = (int)driver.init(0);
    if (code || driver_context()) {
        printf("init=%d\n", code);
        return 1;
    }
    return walk(&driver_door);
}

static inline int driver_walk_found(void *(*find)(const char *name)) {
    driver.init = (__typeof__(driver.init))find("cuInit");
    driver.alloc = (__typeof__(driver.alloc))find("cuMemAlloc_v2");
    driver.free = (__typeof__(driver.free))find("cuMemFree_v2");
    driver.export = (__typeof__(driver.export))find("cuIpcGetMemHandle");
    driver.open = (__typeof__(driver.open))find("cuIpcOpenMemHandle_v2");
    driver.close = (__typeof__(driver.close))find("cuIpcCloseMemHandle");
    if (!driver.init || !driver.alloc || !driver.free || !driver.export || !driver.open ||
        !driver.close) {
        const char *error = dlerror(); /* before it comes the object that the linker names */
        const char *text = error ? strstr(error, "undefined symbol") : NULL;
        printf("not found: %s\n", text ? text : "no error");
        return 1;
    }
    return driver_walk();
}

#ifdef LINKED_DRIVER
static inline int driver_walk_linked(void) {
    driver.init = cuInit;
    driver.alloc = cuMemAlloc_v2;
    driver.free = cuMemFree_v2;
    driver.export = cuIpcGetMemHandle;
    driver.open = cuIpcOpenMemHandle_v2;
    driver.close = cuIpcCloseMemHandle;
    return driver_walk();
}
#endif
