/* The other process of the rows that open: it reads sizes, and answers handles, of memory on the
 * card EXPORTER_DEVICE (0). See measure.h. */
#include "measure.h"

int exporter_main(void) {
    void *pointer = NULL;
    size_t bytes;
    const char *device = getenv("EXPORTER_DEVICE");
    if (device)
        check(cudaSetDevice(atoi(device)), "cudaSetDevice");
    while (read(0, &bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes)) {
        cudaIpcMemHandle_t handle;
        check(cudaFree(pointer), "cudaFree");
        check(cudaMalloc(&pointer, bytes), "cudaMalloc");
        check(cudaIpcGetMemHandle(&handle, pointer), "cudaIpcGetMemHandle");
        if (write(1, &handle, sizeof(handle)) != (ssize_t)sizeof(handle))
            return 1;
    }
    return 0;
}

/* Before this process has touched CUDA: a driver does not survive fork. It ends with its input. Its
 * path is read, not executed as /proc/self/exe: under valgrind that would be valgrind. */
void exporter_start(struct exporter *exporter) {
    char self[4096] = "";
    int in[2], out[2];
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0 || pipe(in) != 0 || pipe(out) != 0)
        exit(1);
    if (fork() == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[1]);
        close(out[0]);
        execl(self, "calls", "exporter", (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    exporter->to = in[1];
    exporter->from = out[0];
}

cudaIpcMemHandle_t exporter_offer(const struct exporter *exporter, size_t bytes) {
    cudaIpcMemHandle_t handle;
    if (write(exporter->to, &bytes, sizeof(bytes)) != (ssize_t)sizeof(bytes) ||
        read(exporter->from, &handle, sizeof(handle)) != (ssize_t)sizeof(handle)) {
        fprintf(stderr, "calls: the exporter has gone\n");
        exit(1);
    }
    return handle;
}
