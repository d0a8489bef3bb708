/* runtime.h - doors made of runtime functions, linked or found by name. */
#pragma once

#include <cuda_runtime_api.h>

#include "walk.h"

static struct {
    cudaError_t (*alloc)(void **, size_t);
    __typeof__(cudaFree) *free;
    __typeof__(cudaIpcGetMemHandle) *export;
    __typeof__(cudaIpcOpenMemHandle) *open;
    __typeof__(cudaIpcCloseMemHandle) *close;
} runtime;

static int runtime_alloc(void **out, size_t size) {
    return (int)runtime.alloc(out, size);
}

static int runtime_free(void *pointer) {
    return (int)runtime.free(pointer);
}

static int runtime_export(void *handle, void *pointer) {
    return (int)runtime.export(handle, pointer);
}

static int runtime_open(void **out, const void *handle) {
    cudaIpcMemHandle_t same;
    memcpy(&same, handle, sizeof same);
    return (int)runtime.open(out, same, cudaIpcMemLazyEnablePeerAccess);
}

static int runtime_close(void *pointer) {
    return (int)runtime.close(pointer);
}

static const struct door runtime_door = {runtime_alloc, runtime_free, runtime_export, runtime_open,
                                         runtime_close};

static inline int runtime_walk_found(void *(*find)(const char *name)) {
    runtime.alloc = (__typeof__(runtime.alloc))find("cudaMalloc");
    runtime.free = (__typeof__(runtime.free))find("cudaFree");
    runtime.export = (__typeof__(runtime.export))find("cudaIpcGetMemHandle");
    runtime.open = (__typeof__(runtime.open))find("cudaIpcOpenMemHandle");
    runtime.close = (__typeof__(runtime.close))find("cudaIpcCloseMemHandle");
    if (!runtime.alloc || !runtime.free || !runtime.export || !runtime.open || !runtime.close) {
        puts("not found");
        return 1;
    }
    return walk(&runtime_door);
}

#ifdef LINKED_RUNTIME
static inline int runtime_walk_linked(void) {
    runtime.alloc = cudaMalloc;
    runtime.free = cudaFree;
    runtime.export = cudaIpcGetMemHandle;
    runtime.open = cudaIpcOpenMemHandle;
    runtime.close = cudaIpcCloseMemHandle;
    return walk(&runtime_door);
}
#endif
