/*
 * late.c - memory that is freed while a child has it open, in a process where every thread begins
 * with much thread-local data (KEPT bytes, of a library). Says whether the memory came back when
 * the child had closed it. With KEPT_HERE built as that library, with "importer" run as the child.
 */
#include "../../common/system_headers.h"
#include <cuda_runtime_api.h>

char *kept_by_thread(void);

#ifdef KEPT_HERE
static __thread char kept[KEPT] __attribute__((tls_model("initial-exec")));

char *kept_by_thread(void) {
    return kept;
}
#else
enum { SIZE = 64 << 20 };

static int importer(void) {
    cudaIpcMemHandle_t handle;
    void *opened = NULL;
    char step = 'o';
    if (read(0, &handle, sizeof(handle)) != sizeof(handle) ||
        cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess) ||
        write(1, &step, 1) != 1 || read(0, &step, 1) != 1 || cudaIpcCloseMemHandle(opened))
        return 1;
    return write(1, &step, 1) != 1 || read(0, &step, 1) > 0;
}

static int start(const char *self, int ends[2]) {
    int down[2], up[2];
    if (pipe2(down, O_CLOEXEC) || pipe2(up, O_CLOEXEC))
        return -1;
    const pid_t child = fork();
    if (child == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        execl(self, self, "importer", NULL);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    ends[0] = up[0];
    ends[1] = down[1];
    return child;
}

static size_t available(void) {
    size_t bytes = 0, total = 0;
    cudaMemGetInfo(&bytes, &total);
    return bytes;
}

static int came_back(size_t before) {
    for (int i = 0; i < 300; i++, usleep(10000))
        if (available() >= before + SIZE)
            return 1;
    return 0;
}

int main(int argc, char **argv) {
    cudaIpcMemHandle_t handle;
    void *pointer = NULL;
    int ends[2] = {-1, -1};
    char step = 'c';
    if (argc > 1)
        return importer();
    kept_by_thread()[1] = 1;
    const pid_t child = start(argv[0], ends);
    if (cudaMalloc(&pointer, SIZE) || cudaIpcGetMemHandle(&handle, pointer) ||
        write(ends[1], &handle, sizeof(handle)) != sizeof(handle) || read(ends[0], &step, 1) != 1)
        return 2;
    const size_t before = available();
    printf("free: %d\n", cudaFree(pointer));
    if (write(ends[1], &step, 1) != 1 || read(ends[0], &step, 1) != 1)
        return 3;
    printf("came back: %d\n", came_back(before));
    close(ends[1]);
    waitpid(child, NULL, 0);
    return 0;
}
#endif
