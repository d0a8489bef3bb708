/*
 * ranks.c - two ranks of a program that uses the library. With an argument the first one has a bug
 * of its own: it lets the library free memory that the second one has open.
 */
#include "libnccl.h"

#include "../../common/system_headers.h"
#include <cuda_runtime_api.h>

static int give(int peer) {
    cudaIpcMemHandle_t handle;
    void *memory;
    char opened;
    return cudaMalloc(&memory, 2 << 20) || cudaIpcGetMemHandle(&handle, memory) ||
           write(peer, &handle, sizeof(handle)) != sizeof(handle) || read(peer, &opened, 1) != 1 ||
           rank_free(memory) || write(peer, &opened, 1) != 1;
}

static int take(int peer) {
    cudaIpcMemHandle_t handle;
    void *memory;
    char freed = 0;
    return read(peer, &handle, sizeof(handle)) != sizeof(handle) ||
           cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess) ||
           write(peer, &freed, 1) != 1 || read(peer, &freed, 1) != 1 ||
           cudaIpcCloseMemHandle(memory);
}

int main(int argc, char **argv) {
    int ends[2], status;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        return 1;
    const pid_t second = fork(); /* before CUDA, as it must be */
    const int peer = ends[second == 0];
    const int failed = argc < 2 ? rank_run(peer) : second ? give(peer) : take(peer);
    if (second == 0)
        return failed;
    return waitpid(second, &status, 0) != second || status || failed;
}
