/*
 * calls.c - what CUDA's memory and IPC calls cost in this process. One line a row: name,
 * nanoseconds.
 *
 * Each figure is the median of batches. Run bare and preloaded in turn by bench.py; says nothing
 * alone. "calls export MiB" is the other process of the rows that open: it exports, and waits for
 * its input to close.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BATCHES = 15, MIB = 1 << 20 };

static void check(cudaError_t error, const char *call) {
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "calls: %s: %s\n", call, cudaGetErrorName(error));
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static cudaIpcMemHandle_t handle; /* of the other process's memory */
static void *mine, *held;
static size_t size;

static void malloc_free(void) {
    void *pointer;
    check(cudaMalloc(&pointer, size), "cudaMalloc");
    check(cudaFree(pointer), "cudaFree");
}

static void export_free(void) {
    cudaIpcMemHandle_t first;
    void *pointer;
    check(cudaMalloc(&pointer, size), "cudaMalloc");
    check(cudaIpcGetMemHandle(&first, pointer), "cudaIpcGetMemHandle");
    check(cudaFree(pointer), "cudaFree");
}

static void get_again(void) {
    cudaIpcMemHandle_t again;
    check(cudaIpcGetMemHandle(&again, mine), "cudaIpcGetMemHandle");
}

static void open_close(void) {
    void *pointer;
    check(cudaIpcOpenMemHandle(&pointer, handle, cudaIpcMemLazyEnablePeerAccess),
          "cudaIpcOpenMemHandle");
    check(cudaIpcCloseMemHandle(pointer), "cudaIpcCloseMemHandle");
}

static void open_again(void) {
    void *pointer;
    check(cudaIpcOpenMemHandle(&pointer, handle, cudaIpcMemLazyEnablePeerAccess),
          "cudaIpcOpenMemHandle");
    check(cudaIpcCloseMemHandle(held), "cudaIpcCloseMemHandle");
}

static void row(const char *name, void call(void), int repeats) {
    double batches[BATCHES];
    call();
    for (int batch = 0; batch < BATCHES; batch++) {
        const double start = now();
        for (int i = 0; i < repeats; i++)
            call();
        batches[batch] = (now() - start) / repeats;
    }
    qsort(batches, BATCHES, sizeof(batches[0]), by_value);
    printf("%s\t%.1f\n", name, batches[BATCHES / 2]);
}

static int export_and_wait(size_t bytes) {
    void *pointer;
    check(cudaMalloc(&pointer, bytes), "cudaMalloc");
    check(cudaIpcGetMemHandle(&handle, pointer), "cudaIpcGetMemHandle");
    if (fwrite(&handle, sizeof(handle), 1, stdout) != 1 || fflush(stdout) != 0)
        return 1;
    while (getchar() != EOF)
        continue;
    return 0;
}

/* Before this process has touched CUDA: a driver does not survive fork. */
static FILE *start_exporter(const char *self, const char *mib) {
    int in[2], out[2];
    if (pipe(in) != 0 || pipe(out) != 0)
        return NULL;
    if (fork() == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[1]);
        close(out[0]);
        execl(self, self, "export", mib, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    return fdopen(out[0], "r"); /* in[1] stays open until we end */
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "export") == 0)
        return export_and_wait((size_t)atoi(argv[2]) * MIB);
    FILE *exporter = start_exporter("/proc/self/exe", "64");
    if (!exporter || fread(&handle, sizeof(handle), 1, exporter) != 1)
        return 1;
    check(cudaMalloc(&mine, 2 * MIB), "cudaMalloc");
    size = 1024;
    row("malloc+free 1 KiB", malloc_free, 200);
    size = 2 * MIB;
    row("malloc+free 2 MiB", malloc_free, 100);
    row("malloc+export+free 2 MiB", export_free, 50);
    size = 64 * MIB;
    row("malloc+free 64 MiB", malloc_free, 20);
    size = 1024 * (size_t)MIB;
    row("malloc+free 1 GiB", malloc_free, 4);
    check(cudaIpcGetMemHandle(&(cudaIpcMemHandle_t){0}, mine), "cudaIpcGetMemHandle");
    row("get handle again", get_again, 10000);
    row("open+close 64 MiB", open_close, 50);
    check(cudaIpcOpenMemHandle(&held, handle, cudaIpcMemLazyEnablePeerAccess),
          "cudaIpcOpenMemHandle");
    row("open+close, open already", open_again, 2000);
    return 0;
}
