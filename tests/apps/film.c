/*
 * film.c - programs that draw frames and look at them, each in a way of its own, by the driver.
 *
 * film draw WAY FRAMES BYTES [MICROSECONDS]    fills a buffer with 1, 2, 3, ... and pauses
 * film look WAY FRAMES BYTES [MICROSECONDS]    reads it, and says what it saw
 * film pass WAY FRAMES BYTES [MICROSECONDS]    reads one buffer, and draws into one of 4 KiB more
 * film ring OI FRAMES BYTES [MICROSECONDS]     draws into one of O times 4 KiB more what it reads
 * in one of I times 4 KiB more, and 1
 *
 * None knows of sharing. A frame is torn if its words differ. Who looks ends with frame FRAMES, or
 * after N looks where MICROSECONDS is -N. With FILM_BUFFERS=N they take N buffers in turn.
 */
#include "../common/system_headers.h"
#include <cuda.h>

enum { PARTS = 4, MOST = 16, HEAD = 4096 /* bytes more that `pass` has */ };

static size_t bytes;
static uint32_t *host;
static CUstream stream, other;
static CUevent event;
static CUfunction writer, reader;
static CUdeviceptr sum;

#define MUST(call)                                                                                 \
    do {                                                                                           \
        const int code_ = (int)(call);                                                             \
        if (code_) {                                                                               \
            fprintf(stderr, "%s: %d\n", #call, code_);                                             \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)

static CUdeviceptr part(CUdeviceptr at, size_t number) {
    return at + number * (bytes / PARTS);
}

static void fill_host(uint32_t value) {
    for (size_t i = 0; i < bytes / 4; i++)
        host[i] = value;
}

static void load_kernels(void) {
    CUmodule module;
    const char *const path = getenv("FILM_KERNELS");
    if (!path || writer)
        return;
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    if (!file || !text || !fread(text, 1, (1 << 20) - 1, file))
        exit(4);
    fclose(file);
    MUST(cuModuleLoadData(&module, text));
    MUST(cuModuleGetFunction(&writer, module, "test_write"));
    MUST(cuModuleGetFunction(&reader, module, "test_read"));
    free(text);
}

static void launch_write(CUdeviceptr to, uint64_t words, uint32_t value) {
    void *arguments[] = {&to, &words, &value};
    MUST(cuLaunchKernel(writer, 64, 1, 1, 128, 1, 1, 0, stream, arguments, NULL));
}

/* --- ways to draw --- */

static void fill(CUdeviceptr to, size_t number, uint32_t value, CUstream where) {
    MUST(cuMemsetD32Async(part(to, number), value, bytes / PARTS / 4, where));
}

static void fill_all(CUdeviceptr to, uint32_t value) {
    for (size_t i = 0; i < PARTS; i++)
        fill(to, i, value, stream);
}

static void draw_one(CUdeviceptr to, uint32_t value) {
    fill_all(to, value);
    MUST(cuCtxSynchronize());
}

static void draw_stream(CUdeviceptr to, uint32_t value) {
    fill_all(to, value);
    MUST(cuStreamSynchronize(stream));
}

static void draw_four(CUdeviceptr to, uint32_t value) {
    for (size_t i = 0; i < PARTS; i++) {
        fill(to, i, value, stream);
        MUST(cuStreamSynchronize(stream));
    }
}

/* One wait, or four. */
static void draw_mixed(CUdeviceptr to, uint32_t value) {
    (value % 3 ? draw_one : draw_four)(to, value);
}

/* Each part by a stream that is destroyed before the work is done. */
static void draw_brief(CUdeviceptr to, uint32_t value) {
    for (size_t i = 0; i < PARTS; i++) {
        CUstream brief;
        MUST(cuStreamCreate(&brief, CU_STREAM_NON_BLOCKING));
        fill(to, i, value, brief);
        MUST(cuStreamDestroy(brief));
        (void)cuStreamQuery(stream); /* has nothing to do with it */
    }
    MUST(cuCtxSynchronize());
}

static void draw_poll(CUdeviceptr to, uint32_t value) {
    fill_all(to, value);
    while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY)
        usleep(20);
}

static _Atomic unsigned called;
static void call(void *arg) {
    called++;
}

static void draw_called(CUdeviceptr to, uint32_t value) {
    const unsigned before = called;
    fill_all(to, value);
    MUST(cuLaunchHostFunc(stream, call, NULL));
    while (called == before)
        usleep(20);
}

/* It waits for another stream, which waits for an event. */
static void draw_event(CUdeviceptr to, uint32_t value) {
    fill_all(to, value);
    MUST(cuEventRecord(event, stream));
    MUST(cuStreamWaitEvent(other, event, 0));
    MUST(cuStreamSynchronize(other));
}

/* It waits for nothing, ever. */
static void draw_never(CUdeviceptr to, uint32_t value) {
    fill_all(to, value);
}

static void draw_upload(CUdeviceptr to, uint32_t value) {
    fill_host(value);
    for (size_t i = 0; i < PARTS; i++)
        MUST(cuMemcpyHtoD(part(to, i), host + i * (bytes / PARTS / 4), bytes / PARTS));
}

static void draw_whole(CUdeviceptr to, uint32_t value) {
    fill_host(value);
    MUST(cuMemcpyHtoD(to, host, bytes));
}

static void draw_kernel(CUdeviceptr to, uint32_t value) {
    load_kernels();
    for (size_t i = 0; i < PARTS; i++)
        launch_write(part(to, i), bytes / PARTS / 4, value);
    MUST(cuCtxSynchronize());
}

static void draw_graph(CUdeviceptr to, uint32_t value) {
    static CUgraphExec exec;
    CUgraph graph;
    fill_host(value);
    if (!exec) {
        MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        for (size_t i = 0; i < PARTS; i++)
            MUST(cuMemcpyHtoDAsync(part(to, i), host + i * (bytes / PARTS / 4), bytes / PARTS,
                                   stream));
        MUST(cuStreamEndCapture(stream, &graph));
        MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    }
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
}

/* Its kernel is a node that it has added by itself; with each frame it gets another value. */
static void draw_node(CUdeviceptr to, uint32_t value) {
    static CUgraphExec exec;
    static CUgraphNode node;
    CUgraph graph;
    uint64_t words = bytes / 4;
    void *arguments[] = {&to, &words, &value};
    load_kernels();
    CUDA_KERNEL_NODE_PARAMS kernel = {.func = writer,
                                      .gridDimX = 64,
                                      .gridDimY = 1,
                                      .gridDimZ = 1,
                                      .blockDimX = 128,
                                      .blockDimY = 1,
                                      .blockDimZ = 1,
                                      .kernelParams = arguments};
    if (!exec) {
        MUST(cuGraphCreate(&graph, 0));
        MUST(cuGraphAddKernelNode(&node, graph, NULL, 0, &kernel));
        MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
    } else {
        MUST(cuGraphExecKernelNodeSetParams(exec, node, &kernel));
    }
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
}

/* Two threads draw a half each, and meet. */
static struct {
    pthread_barrier_t barrier;
    CUcontext context;
    CUdeviceptr to;
    uint32_t value;
} pair;

static void *draw_half(void *arg) {
    MUST(cuCtxSetCurrent(pair.context));
    for (;;) {
        pthread_barrier_wait(&pair.barrier);
        fill(pair.to, 2, pair.value, other);
        fill(pair.to, 3, pair.value, other);
        MUST(cuStreamSynchronize(other));
        pthread_barrier_wait(&pair.barrier);
    }
    return NULL;
}

static void draw_threads(CUdeviceptr to, uint32_t value) {
    static pthread_t thread;
    pair.to = to;
    pair.value = value;
    if (!thread) {
        MUST(cuCtxGetCurrent(&pair.context));
        pthread_barrier_init(&pair.barrier, NULL, 2);
        pthread_create(&thread, NULL, draw_half, NULL);
    }
    pthread_barrier_wait(&pair.barrier);
    fill(to, 0, value, stream);
    fill(to, 1, value, stream);
    pthread_barrier_wait(&pair.barrier);
    MUST(cuCtxSynchronize());
}

/* --- ways to look: whether the frame is torn, and its number --- */

static bool check(uint32_t *value) {
    *value = host[0];
    return memcmp(host, host + 1, bytes - 4) != 0;
}

static bool look_one(CUdeviceptr from, uint32_t *value) {
    MUST(cuMemcpyDtoH(host, from, bytes));
    return check(value);
}

static bool look_parts(CUdeviceptr from, uint32_t *value) {
    for (size_t i = 0; i < PARTS; i++)
        MUST(cuMemcpyDtoH(host + i * (bytes / PARTS / 4), part(from, i), bytes / PARTS));
    return check(value);
}

static bool look_stream(CUdeviceptr from, uint32_t *value) {
    for (size_t i = 0; i < PARTS; i++)
        MUST(cuMemcpyDtoHAsync(host + i * (bytes / PARTS / 4), part(from, i), bytes / PARTS,
                               stream));
    MUST(cuStreamSynchronize(stream));
    return check(value);
}

/* What `pass` draws. */
static bool look_head(CUdeviceptr from, uint32_t *value) {
    MUST(cuMemcpyDtoH(host, from, bytes));
    *value = host[0];
    return memcmp(host, host + 1, bytes - HEAD - 4) != 0;
}

/* The sum of equal words is one word so many times. */
static bool look_kernel(CUdeviceptr from, uint32_t *value) {
    uint64_t words = bytes / 4;
    uint32_t got = 0, first = 0;
    void *arguments[] = {&from, &words, &sum};
    load_kernels();
    MUST(cuMemsetD32Async(sum, 0, 1, stream));
    MUST(cuLaunchKernel(reader, 64, 1, 1, 128, 1, 1, 0, stream, arguments, NULL));
    MUST(cuMemcpyDtoHAsync(&got, sum, 4, stream));
    MUST(cuMemcpyDtoHAsync(&first, from + bytes - 4, 4, stream));
    MUST(cuStreamSynchronize(stream));
    *value = first;
    return got != first * (uint32_t)words;
}

/* --- */

struct draw {
    const char *name;
    void (*fn)(CUdeviceptr to, uint32_t value);
};
static const struct draw draws[] = {
    {"one", draw_one},       {"stream", draw_stream}, {"four", draw_four},
    {"poll", draw_poll},     {"called", draw_called}, {"event", draw_event},
    {"never", draw_never},   {"upload", draw_upload}, {"whole", draw_whole},
    {"kernel", draw_kernel}, {"graph", draw_graph},   {"threads", draw_threads},
    {"mixed", draw_mixed},   {"node", draw_node},     {"brief", draw_brief},
};
struct look {
    const char *name;
    bool (*fn)(CUdeviceptr from, uint32_t *value);
};
static const struct look looks[] = {{"one", look_one},
                                    {"head", look_head},
                                    {"parts", look_parts},
                                    {"stream", look_stream},
                                    {"kernel", look_kernel}};

#define FIND(table, wanted)                                                                        \
    ({                                                                                             \
        size_t at_ = 0;                                                                            \
        while (at_ < sizeof(table) / sizeof(table[0]) && strcmp(table[at_].name, wanted) != 0)     \
            at_++;                                                                                 \
        if (at_ == sizeof(table) / sizeof(table[0]))                                               \
            exit(2);                                                                               \
        table[at_].fn;                                                                             \
    })

struct seen {
    unsigned frames, torn, changes, gaps, back;
    uint32_t first, last;
};

static void note(struct seen *seen, bool torn, uint32_t value) {
    seen->frames++;
    seen->torn += torn;
    if (!seen->first)
        seen->first = value;
    if (!torn && value != seen->last) {
        seen->changes++;
        seen->gaps += seen->last && value > seen->last + 1;
        seen->back += value < seen->last;
        seen->last = value;
    }
}

static void begin(void) {
    CUdevice device;
    CUcontext context;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuMemAlloc(&sum, 4));
    MUST(cuMemAllocHost((void **)&host, bytes));
}

/* A filter in a ring: what it draws comes back to it. */
static void ring(CUdeviceptr from, CUdeviceptr to, struct seen *seen, uint32_t *value) {
    const bool torn = look_one(from, value);
    note(seen, torn, *value);
    draw_stream(to, *value + 1);
}

static CUdeviceptr buffers[MOST];
static unsigned buffer_count = 1;

static void allocate(unsigned heads) {
    if (getenv("FILM_BUFFERS"))
        buffer_count = (unsigned)atoi(getenv("FILM_BUFFERS"));
    for (unsigned i = 0; i < buffer_count && i < MOST; i++)
        MUST(cuMemAlloc(&buffers[i], bytes + heads * HEAD));
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    if (argc < 5)
        return 2;
    const unsigned frames = (unsigned)atoi(argv[3]);
    const int pause = argc > 5 ? atoi(argv[5]) : 0;
    const unsigned most = pause < 0 ? (unsigned)-pause : UINT32_MAX;
    const bool draws_it = argv[1][0] == 'd', passes = argv[1][0] == 'p', rings = argv[1][0] == 'r';
    struct seen seen = {0};
    CUdeviceptr out = 0;
    uint32_t value = 0;
    bytes = (size_t)atol(argv[4]);
    begin();
    if (rings)
        MUST(cuMemAlloc(&out, bytes + (size_t)(argv[2][0] - '0') * HEAD));
    allocate(rings ? (unsigned)(argv[2][1] - '0') : 0);
    if (passes)
        MUST(cuMemAlloc(&out, bytes + HEAD));
    const double began = now();
    for (unsigned i = 0; draws_it && i < frames; i++) {
        FIND(draws, argv[2])(buffers[i % buffer_count], i + 1);
        if (pause > 0)
            usleep((unsigned)pause);
    }
    while (!draws_it && seen.last < frames && seen.frames < most) {
        const CUdeviceptr buffer = buffers[seen.frames % buffer_count];
        if (rings) {
            ring(buffer, out, &seen, &value);
        } else if (passes) {
            MUST(cuMemcpyDtoDAsync(out, buffer, bytes, stream));
            MUST(cuMemcpyDtoHAsync(&value, out, 4, stream));
            MUST(cuStreamSynchronize(stream));
            note(&seen, false, value);
        } else {
            const bool torn = FIND(looks, argv[2])(buffer, &value);
            note(&seen, torn, value);
        }
        if (pause > 0)
            usleep((unsigned)pause);
    }
    const double took = now() - began;
    if (draws_it)
        printf("drew %u, %.0f a second\n", frames, frames / took);
    else
        printf("frames %u torn %u new %u gaps %u back %u first %u last %u, %.0f a second\n",
               seen.frames, seen.torn, seen.changes, seen.gaps, seen.back, seen.first, seen.last,
               seen.changes / took);
    fflush(stdout);
    if (draws_it && getenv("FILM_STAYS")) /* milliseconds, for who has not begun to look */
        usleep((unsigned)atoi(getenv("FILM_STAYS")) * 1000);
    if (pair.value)
        _exit(0);
    MUST(cuCtxSynchronize());
    for (unsigned i = 0; i < buffer_count; i++)
        MUST(cuMemFree(buffers[i]));
    return 0;
}
