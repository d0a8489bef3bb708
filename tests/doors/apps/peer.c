/* peer.c - exports a buffer, writes its handle to stdout, and keeps it until stdin ends. */
#include <cuda_runtime_api.h>
#include <unistd.h>

int main(void) {
    cudaIpcMemHandle_t handle;
    void *buffer;
    char unused;
    if (cudaMalloc(&buffer, 1 << 20) || cudaIpcGetMemHandle(&handle, buffer) ||
        write(1, &handle, sizeof handle) != sizeof handle)
        return 1;
    while (read(0, &unused, 1) > 0)
        ;
    return cudaFree(buffer) ? 1 : 0;
}
