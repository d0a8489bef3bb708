/* What a peer does for each op of peer.h. Runs in the peer, the only place that calls the driver.
 */
#include "gpu.h"
#include "peer.h"

#define POINTER(n) ((void *)(uintptr_t)(n))

static CUresult use_device(struct message *m) {
    CUcontext context;
    CUdevice device;
    CUresult result = gpu.cuDeviceGet(&device, (int)m->n[0]);
    if (!result)
        result = gpu.cuDevicePrimaryCtxRetain(&context, device);
    return result ? result : gpu.cuCtxSetCurrent(context);
}

static CUresult start(struct message *m) {
    CUresult result = gpu.cuInit(0);
    return result ? result : use_device(m);
}

static CUresult allocate(struct message *m) {
    CUdeviceptr address = 0;
    void *pointer = NULL;
    size_t size = m->n[0], pitch;
    CUresult result;
    switch ((enum kind)m->n[1]) {
    case KIND_PITCH:
        result = gpu.cuMemAllocPitch_v2(&address, &pitch, size / 64, 64, 4);
        break;
    case KIND_POOL:
        result = gpu.cuMemAllocAsync(&address, size, NULL);
        if (!result)
            result = gpu.cuCtxSynchronize();
        break;
    case KIND_MANAGED:
        result = gpu.cuMemAllocManaged(&address, size, CU_MEM_ATTACH_GLOBAL);
        break;
    case KIND_HOST:
        result = gpu.cuMemHostAlloc(&pointer, size, 0);
        address = (CUdeviceptr)(uintptr_t)pointer;
        break;
    default:
        result = gpu.cuMemAlloc_v2(&address, size);
    }
    m->n[0] = address;
    return result;
}

#define SERVE(name, call)                                                                          \
    static CUresult name(struct message *m) {                                                      \
        return call;                                                                               \
    }
SERVE(release, gpu.cuMemFree_v2(m->n[0]))

static CUresult fill(struct message *m) {
    CUresult result = gpu.cuMemsetD8_v2(m->n[0], (unsigned char)m->n[2], m->n[1]);
    return result ? result : gpu.cuCtxSynchronize();
}

static CUresult read_bytes(struct message *m) {
    unsigned char *bytes = calloc(1, m->n[1]);
    CUresult result = gpu.cuMemcpyDtoH_v2(bytes, m->n[0], m->n[1]);
    m->n[0] = *bytes;
    free(bytes);
    return result;
}

static CUresult get(struct message *m) {
    CUipcMemHandle handle;
    memset(&handle, 0, sizeof handle);
    CUresult result = gpu.cuIpcGetMemHandle(&handle, m->n[0]);
    memcpy(m->bytes, &handle, sizeof handle);
    return result;
}

static CUresult open_handle(struct message *m) {
    CUipcMemHandle handle;
    CUdeviceptr address = 0;
    memcpy(&handle, m->bytes, sizeof handle);
    CUresult result = gpu.cuIpcOpenMemHandle_v2(&address, handle, (unsigned)m->n[0]);
    m->n[0] = address;
    return result;
}

SERVE(close_handle, gpu.cuIpcCloseMemHandle(m->n[0]))

static CUresult range(struct message *m) {
    CUdeviceptr base = 0;
    size_t size = 0;
    CUresult result = gpu.cuMemGetAddressRange_v2(&base, &size, m->n[0]);
    m->n[0] = base;
    m->n[1] = size;
    return result;
}

static CUresult attribute(struct message *m) {
    uint64_t value[8] = {0};
    CUresult result = gpu.cuPointerGetAttribute(value, (CUpointer_attribute)m->n[1], m->n[0]);
    m->n[0] = value[0];
    return result;
}

static CUresult available(struct message *m) {
    size_t bytes = 0, total;
    CUresult result = gpu.cuMemGetInfo_v2(&bytes, &total);
    m->n[0] = bytes;
    return result;
}

static CUresult new_context(struct message *m) {
    CUcontext context = NULL;
    CUresult result = gpu.cuCtxCreate_v4(&context, NULL, 0, 0);
    m->n[0] = (uint64_t)(uintptr_t)context;
    return result;
}

SERVE(set_context, gpu.cuCtxSetCurrent(POINTER(m->n[0])))

static CUresult which_context(struct message *m) {
    CUcontext context = NULL;
    CUresult result = gpu.cuCtxGetCurrent(&context);
    m->n[0] = (uint64_t)(uintptr_t)context;
    return result;
}

SERVE(destroy_context, gpu.cuCtxDestroy_v2(POINTER(m->n[0])))
SERVE(reset, gpu.cuDevicePrimaryCtxReset_v2((CUdevice)m->n[0]))

static CUresult devices(struct message *m) {
    int count = 0;
    CUresult result = gpu.cuDeviceGetCount(&count);
    m->n[0] = (uint64_t)count;
    return result;
}

static CUresult forked(struct message *m) {
    int channel[2];
    if (pipe(channel))
        return CUDA_ERROR_UNKNOWN;
    pid_t child = fork();
    if (child == 0) {
        CUdeviceptr address = 0;
        CUipcMemHandle handle;
        memcpy(&handle, m->bytes, sizeof handle);
        uint64_t codes[4] = {gpu.cuInit(0), gpu.cuMemFree_v2(m->n[0]),
                             gpu.cuMemAlloc_v2(&address, 4096),
                             gpu.cuIpcOpenMemHandle_v2(&address, handle, 1)};
        ssize_t sent = write(channel[1], codes, sizeof codes);
        _exit(sent != sizeof codes);
    }
    ssize_t got = read(channel[0], m->n, sizeof m->n);
    waitpid(child, NULL, 0);
    close(channel[0]);
    close(channel[1]);
    return got == sizeof m->n ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

static void CUDA_CB sleep_ms(void *data) {
    uintptr_t ms = (uintptr_t)data;
    struct timespec nap = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    nanosleep(&nap, NULL);
}

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static CUresult busy_free(struct message *m) {
    CUstream stream;
    CUresult result = gpu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (!result)
        result = gpu.cuLaunchHostFunc(stream, sleep_ms, POINTER(300));
    uint64_t before = now_ms();
    if (!result)
        result = gpu.cuMemFree_v2(m->n[0]);
    m->n[0] = now_ms() - before;
    return result;
}

struct thread_free {
    CUcontext context;
    CUdeviceptr address;
    int relaxed;
    CUresult result;
};

static void *free_in_thread(void *argument) {
    struct thread_free *job = argument;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    gpu.cuCtxSetCurrent(job->context);
    if (job->relaxed)
        gpu.cuThreadExchangeStreamCaptureMode(&mode);
    job->result = gpu.cuMemFree_v2(job->address);
    return NULL;
}

static CUresult capture(struct message *m) {
    struct thread_free job = {.address = m->n[0], .relaxed = m->n[1] != 0};
    CUstream stream;
    CUgraph graph = NULL;
    pthread_t thread;
    CUresult result = gpu.cuCtxGetCurrent(&job.context);
    if (!result)
        result = gpu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (!result)
        result = gpu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    if (result || pthread_create(&thread, NULL, free_in_thread, &job))
        return result;
    pthread_join(thread, NULL);
    m->n[0] = job.result;
    m->n[1] = gpu.cuStreamEndCapture(stream, &graph);
    if (graph)
        gpu.cuGraphDestroy(graph);
    return CUDA_SUCCESS;
}

static CUresult new_event(struct message *m) {
    CUevent event = NULL;
    CUresult result = gpu.cuEventCreate(&event, (unsigned)m->n[0]);
    m->n[0] = (uint64_t)(uintptr_t)event;
    return result;
}

static CUresult get_event(struct message *m) {
    CUipcEventHandle handle;
    memset(&handle, 0, sizeof handle);
    CUresult result = gpu.cuIpcGetEventHandle(&handle, POINTER(m->n[0]));
    memcpy(m->bytes, &handle, sizeof handle);
    return result;
}

static CUresult open_event(struct message *m) {
    CUipcEventHandle handle;
    CUevent event = NULL;
    memcpy(&handle, m->bytes, sizeof handle);
    CUresult result = gpu.cuIpcOpenEventHandle(&event, handle);
    m->n[0] = (uint64_t)(uintptr_t)event;
    return result;
}

SERVE(record, gpu.cuEventRecord(POINTER(m->n[0]), NULL))
SERVE(query, gpu.cuEventQuery(POINTER(m->n[0])))

static CUresult wait_event(struct message *m) {
    uint64_t before = now_ms();
    CUresult result = gpu.cuEventSynchronize(POINTER(m->n[0]));
    m->n[0] = now_ms() - before;
    return result;
}

SERVE(destroy_event, gpu.cuEventDestroy_v2(POINTER(m->n[0])))

static CUresult late(struct message *m) {
    CUstream stream;
    CUresult result = gpu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (!result)
        result = gpu.cuLaunchHostFunc(stream, sleep_ms, POINTER(m->n[1]));
    return result ? result : gpu.cuEventRecord(POINTER(m->n[0]), stream);
}

/* --- the runtime, where there is one --- */

static void *runtime_call(const char *name) {
    static void *library;
    if (!library)
        library = dlopen("libcudart.so.13", RTLD_NOW);
    return library ? dlsym(library, name) : NULL;
}

static CUresult cuda_open(struct message *m) {
    int (*call)(void **, CUipcMemHandle, unsigned);
    CUipcMemHandle handle;
    void *pointer = NULL;
    memcpy(&handle, m->bytes, sizeof handle);
    *(void **)(void *)&call = runtime_call("cudaIpcOpenMemHandle");
    CUresult result = (CUresult)(call ? call(&pointer, handle, (unsigned)m->n[0]) : NO_RUNTIME);
    m->n[0] = (uint64_t)(uintptr_t)pointer;
    return result;
}

static CUresult cuda_close(struct message *m) {
    int (*call)(void *);
    *(void **)(void *)&call = runtime_call("cudaIpcCloseMemHandle");
    return (CUresult)(call ? call(POINTER(m->n[0])) : NO_RUNTIME);
}

static CUresult cuda_malloc(struct message *m) {
    int (*call)(void **, size_t);
    void *pointer = POINTER(1);
    *(void **)(void *)&call = runtime_call("cudaMalloc");
    CUresult result = (CUresult)(call ? call(&pointer, m->n[0]) : NO_RUNTIME);
    m->n[0] = (uint64_t)(uintptr_t)pointer;
    return result;
}

static CUresult cuda_reset(struct message *m) {
    int (*call)(void);
    *(void **)(void *)&call = runtime_call("cudaDeviceReset");
    return (CUresult)(call ? call() : NO_RUNTIME);
}

/* --- crowd.c and vmm.c --- */

SERVE(threads, (CUresult)crowd_threads(m))
SERVE(churn, (CUresult)crowd_churn(m))

static CUresult catch (struct message *m) {
    return (CUresult)crowd_catch(m);
}

SERVE(vmm, (CUresult)vmm_do(m))

static CUresult (*const actions[OPS])(struct message *) = {
    [OP_START] = start,
    [OP_ALLOC] = allocate,
    [OP_FREE] = release,
    [OP_FILL] = fill,
    [OP_READ] = read_bytes,
    [OP_GET] = get,
    [OP_OPEN] = open_handle,
    [OP_CLOSE] = close_handle,
    [OP_RANGE] = range,
    [OP_ATTRIBUTE] = attribute,
    [OP_AVAILABLE] = available,
    [OP_CONTEXT] = new_context,
    [OP_CURRENT] = set_context,
    [OP_WHICH] = which_context,
    [OP_DESTROY] = destroy_context,
    [OP_RESET] = reset,
    [OP_DEVICE] = use_device,
    [OP_DEVICES] = devices,
    [OP_FORKED] = forked,
    [OP_BUSY_FREE] = busy_free,
    [OP_CAPTURE] = capture,
    [OP_EVENT] = new_event,
    [OP_EVENT_GET] = get_event,
    [OP_EVENT_OPEN] = open_event,
    [OP_RECORD] = record,
    [OP_QUERY] = query,
    [OP_WAIT] = wait_event,
    [OP_EVENT_DESTROY] = destroy_event,
    [OP_LATE] = late,
    [OP_CUDA_OPEN] = cuda_open,
    [OP_CUDA_CLOSE] = cuda_close,
    [OP_CUDA_MALLOC] = cuda_malloc,
    [OP_CUDA_RESET] = cuda_reset,
    [OP_THREADS] = threads,
    [OP_CHURN] = churn,
    [OP_CATCH] = catch,
    [OP_VMM] = vmm,
};

void peer_serve(int from, int to) {
    struct message message;
    if (!gpu_load())
        exit(2);
    while (read(from, &message, sizeof message) == sizeof message && message.op != OP_EXIT) {
        message.code = (int32_t)actions[message.op](&message);
        if (write(to, &message, sizeof message) != sizeof message)
            break;
    }
}
