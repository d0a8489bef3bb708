/*
 * libnccl.c - tears down as NCCL 2.28 does with NCCL_CUMEM_ENABLE=0: a thread of the library's own
 * frees the buffer of its rank while the other rank has it open.
 */
#include "libnccl.h"

#include "../../common/system_headers.h"
#include <cuda_runtime_api.h>

static int swap_bytes(int peer, const void *own, void *theirs, size_t size) {
    return write(peer, own, size) != (ssize_t)size || read(peer, theirs, size) != (ssize_t)size;
}

static int both_are_here(int peer) {
    char byte = 0;
    return swap_bytes(peer, &byte, &byte, 1);
}

static int tear_down(int peer, void *buffer, void *opened) {
    return both_are_here(peer) || cudaFree(buffer) || both_are_here(peer) ||
           cudaIpcCloseMemHandle(opened);
}

static void *serve(void *arg) {
    const int peer = (int)(intptr_t)arg;
    cudaIpcMemHandle_t own, theirs;
    void *buffer, *opened;
    const int failed = cudaMalloc(&buffer, 10 << 20) || cudaIpcGetMemHandle(&own, buffer) ||
                       swap_bytes(peer, &own, &theirs, sizeof(own)) ||
                       cudaIpcOpenMemHandle(&opened, theirs, cudaIpcMemLazyEnablePeerAccess) ||
                       tear_down(peer, buffer, opened);
    return (void *)(intptr_t)failed;
}

int rank_run(int peer) {
    pthread_t proxy;
    void *failed;
    return pthread_create(&proxy, NULL, serve, (void *)(intptr_t)peer) ||
           pthread_join(proxy, &failed) || failed;
}

int rank_free(void *memory) {
    const int code = (int)cudaFree(memory);
    return code;
}
