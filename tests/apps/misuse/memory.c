/*
 * memory.c - the steps that most scenarios begin with: memory of known bytes, its handle, the
 * opening of it in the other process.
 */
#include "misuse.h"

#include <dlfcn.h>

void *driver_function(const char *name) {
    static void *library;
    if (!library)
        library = dlopen("libcuda.so.1", RTLD_NOW);
    void *function = library ? dlsym(library, name) : NULL;
    if (!function)
        abort();
    return function;
}

void *allocate(int byte) {
    void *pointer = NULL;
    MUST(cudaMalloc(&pointer, BLOCK));
    MUST(cudaMemset(pointer, byte, BLOCK));
    MUST(cudaDeviceSynchronize());
    return pointer;
}

void send_export(void *pointer) {
    cudaIpcMemHandle_t handle;
    MUST(cudaIpcGetMemHandle(&handle, pointer));
    send_bytes(&handle, sizeof(handle));
}

void owner(void) {
    void *p = allocate(OWNERS);
    send_export(p);
    wait_for_peer();
    MUST(cudaFree(p));
}

cudaIpcMemHandle_t take_handle(void) {
    cudaIpcMemHandle_t handle;
    take_bytes(&handle, sizeof(handle));
    return handle;
}

void *open_received(void) {
    void *pointer = NULL;
    const cudaIpcMemHandle_t handle = take_handle();
    MUST(cudaIpcOpenMemHandle(&pointer, handle, LAZY));
    return pointer;
}

void check_byte(const void *pointer, int expected) {
    unsigned char byte = 0;
    MUST(cudaMemcpy(&byte, pointer, sizeof(byte), cudaMemcpyDeviceToHost));
    note(byte == expected, "the memory holds %02x", byte);
}

void *inside(void *pointer) {
    return (char *)pointer + 4096;
}
