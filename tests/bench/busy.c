/*
 * A server that is never idle. Each length is a thread with a stream of its own, which runs kernels
 * of that length, one after the other. Its weights are layers of 2 MiB, the same in all such
 * processes.
 *
 * usage: busy KERNELS.ptx LAYERS MILLISECONDS NANOSECONDS...
 *
 * It says "ready" when the weights are loaded. At the end it prints a line for each length: how
 * many kernels, by how many microseconds the slowest of them was late, and half of them at most;
 * how long launches took in all that took more than 0.1 ms, and the longest of them. Last: "right"
 * if the weights are what was loaded.
 */
#include "../common/system_headers.h"
#include <cuda.h>

#define MIB     (1024u * 1024u)
#define LAYER   (2 * (size_t)MIB) /* a block */
#define LONG    100000            /* ns; a launch that takes more was held */
#define SAMPLES (1 << 20)

enum { MOST = 16, LAYERS = 8192, WORDS = 1024, GRID = 4 };

static struct {
    __typeof__(cuInit) *init;
    __typeof__(cuDevicePrimaryCtxRetain) *retain;
    __typeof__(cuCtxSetCurrent) *use;
    __typeof__(cuModuleLoadData) *load;
    __typeof__(cuModuleGetFunction) *get;
    __typeof__(cuMemAlloc) *alloc;
    __typeof__(cuMemcpyHtoD) *upload;
    __typeof__(cuMemcpyDtoH) *download;
    __typeof__(cuStreamCreate) *stream;
    __typeof__(cuStreamSynchronize) *wait;
    __typeof__(cuLaunchKernel) *launch;
} cu;

static struct {
    CUcontext context;
    CUfunction kernel;
    CUdeviceptr layers[LAYERS], sum;
    size_t count;
    uint64_t until;
} run;

struct server {
    pthread_t thread;
    uint64_t length;
    uint64_t held, longest; /* launches */
    uint64_t *late;
    size_t count;
};

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void check(CUresult code, const char *call) {
    if (code == CUDA_SUCCESS)
        return;
    fprintf(stderr, "busy: %s: %d\n", call, (int)code);
    exit(1);
}

static void find(void *library, void *function, const char *name) {
    *(void **)function = dlsym(library, name);
    if (*(void **)function)
        return;
    fprintf(stderr, "busy: the driver has no %s\n", name);
    exit(1);
}

static void find_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "busy: %s\n", dlerror());
        exit(1);
    }
    find(library, &cu.init, "cuInit");
    find(library, &cu.retain, "cuDevicePrimaryCtxRetain");
    find(library, &cu.use, "cuCtxSetCurrent");
    find(library, &cu.load, "cuModuleLoadData");
    find(library, &cu.get, "cuModuleGetFunction");
    find(library, &cu.alloc, "cuMemAlloc_v2");
    find(library, &cu.upload, "cuMemcpyHtoD_v2");
    find(library, &cu.download, "cuMemcpyDtoH_v2");
    find(library, &cu.stream, "cuStreamCreate");
    find(library, &cu.wait, "cuStreamSynchronize");
    find(library, &cu.launch, "cuLaunchKernel");
}

static const char *read_text(const char *path) {
    static char text[MIB];
    FILE *file = fopen(path, "r");
    if (!file || fread(text, 1, sizeof(text) - 1, file) == 0) {
        fprintf(stderr, "busy: %s cannot be read\n", path);
        exit(1);
    }
    fclose(file);
    return text;
}

/* No two layers are equal. */
static void fill(uint32_t *layer, size_t number) {
    uint32_t word = (uint32_t)number * 2654435761u + 1;
    for (size_t i = 0; i < LAYER / sizeof(*layer); i++)
        layer[i] = word = word * 1664525u + 1013904223u;
}

static void load(void) {
    uint32_t *layer = malloc(LAYER);
    if (!layer)
        exit(1);
    check(cu.alloc(&run.sum, 4096), "cuMemAlloc");
    for (size_t i = 0; i < run.count; i++) {
        fill(layer, i);
        check(cu.alloc(&run.layers[i], LAYER), "cuMemAlloc");
        check(cu.upload(run.layers[i], layer, LAYER), "cuMemcpyHtoD");
    }
    free(layer);
}

static int is_right(void) {
    uint32_t *layer = malloc(LAYER), *there = malloc(LAYER);
    int right = layer && there;
    for (size_t i = 0; right && i < run.count; i++) {
        fill(layer, i);
        check(cu.download(there, run.layers[i], LAYER), "cuMemcpyDtoH");
        right = memcmp(layer, there, LAYER) == 0;
    }
    free(layer);
    free(there);
    return right;
}

static void serve_one(struct server *server, CUstream stream) {
    uint64_t words = WORDS;
    void *values[] = {&run.layers[0], &words, &server->length, &run.sum};
    const uint64_t begun = now();
    check(cu.launch(run.kernel, GRID, 1, 1, 32, 1, 1, 0, stream, values, NULL), "cuLaunchKernel");
    const uint64_t launched = now() - begun;
    check(cu.wait(stream), "cuStreamSynchronize");
    const uint64_t took = now() - begun;
    if (launched > LONG)
        server->held += launched;
    if (launched > server->longest)
        server->longest = launched;
    if (server->count < SAMPLES)
        server->late[server->count++] = took > server->length ? took - server->length : 0;
}

static void *serve(void *argument) {
    struct server *server = argument;
    CUstream stream;
    check(cu.use(run.context), "cuCtxSetCurrent");
    check(cu.stream(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    serve_one(server, stream); /* loads code */
    server->held = server->longest = server->count = 0;
    while (now() < run.until)
        serve_one(server, stream);
    return NULL;
}

static int by_size(const void *a, const void *b) {
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static void say(struct server *server) {
    if (!server->count)
        exit(1);
    qsort(server->late, server->count, sizeof(*server->late), by_size);
    printf("%llu\t%zu\t%llu\t%llu\t%llu\t%llu\n", (unsigned long long)server->length, server->count,
           (unsigned long long)server->late[server->count - 1] / 1000,
           (unsigned long long)server->late[server->count / 2] / 1000,
           (unsigned long long)server->held / 1000, (unsigned long long)server->longest / 1000);
}

int main(int argc, char **argv) {
    static struct server servers[MOST];
    const int count = argc - 4;
    CUmodule module;
    run.count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    if (count < 1 || count > MOST || run.count < 1 || run.count > LAYERS) {
        fprintf(stderr, "usage: busy KERNELS.ptx LAYERS MILLISECONDS NANOSECONDS...\n");
        return 2;
    }
    find_driver();
    check(cu.init(0), "cuInit");
    check(cu.retain(&run.context, 0), "cuDevicePrimaryCtxRetain");
    check(cu.use(run.context), "cuCtxSetCurrent");
    check(cu.load(&module, read_text(argv[1])), "cuModuleLoadData");
    check(cu.get(&run.kernel, module, "test_spin"), "cuModuleGetFunction");
    load();
    printf("ready\n");
    fflush(stdout);
    run.until = now() + strtoul(argv[3], NULL, 10) * 1000000;
    for (int i = 0; i < count; i++) {
        servers[i].length = strtoul(argv[4 + i], NULL, 10);
        servers[i].late = calloc(SAMPLES, sizeof(*servers[i].late));
        if (!servers[i].late || pthread_create(&servers[i].thread, NULL, serve, &servers[i]) != 0)
            return 1;
    }
    for (int i = 0; i < count; i++) {
        pthread_join(servers[i].thread, NULL);
        say(&servers[i]);
    }
    printf("%s\n", is_right() ? "right" : "wrong");
    return 0;
}
